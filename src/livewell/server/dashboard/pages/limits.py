"""Will the limits hold? Rate, budget and breaker of every credential, and what to slow down."""

from __future__ import annotations

from livewell.errors import UnknownLimiter
from livewell.operations.mend import Mender
from livewell.refresh.nudges import DUE
from livewell.refresh.plan.report import document, make_plan
from livewell.refresh.registry.admin import TypeAdmin
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.visit import Done, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts


async def panels(visit: Visit) -> list[Panel]:
    """Limiters, upstreams, the plan."""

    async def limiters() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = parts(sample.document, "limits", "limiters")
        return of_sample(sample, "limits", limiters=found, is_empty=not found)

    async def upstreams() -> Loaded:
        found = await Mender(visit.database).upstreams()
        return loaded(upstreams=found, is_empty=not found)

    async def plan() -> Loaded:
        found = document(await make_plan(visit.database))
        return loaded(plan=found, is_empty=not found["upstreams"])

    return [
        Panel("limiters", "Limits by credential", "limits.html", limiters, "No upstream has a limit."),
        Panel("upstreams", "Upstreams", "upstreams.html", upstreams, "No upstream is applied yet."),
        Panel("plan", "What the limits allow", "plan.html", plan, "Nothing is watched, so there is nothing to plan."),
    ]


async def pause(visit: Visit) -> Done:
    """Call an upstream no more, until it is resumed."""
    name = visit.parts["name"]
    await TypeAdmin(visit.state.pools.operate).pause(name, paused=True, upstream=True)
    return Done(f"{name} is paused: nothing of it is fetched until it is resumed.", "/limits")


async def resume(visit: Visit) -> Done:
    """End a pause, and a silence that the upstream asked for."""
    answer = await Mender(visit.state.pools.operate).resume(_name(visit))
    visit.state.nudger.nudge(DUE)
    words = {"resumed": "is called again", "not_stopped": "was neither paused nor silent"}
    return Done(f"{visit.parts['name']} {words.get(answer, answer)}.", "/limits")


async def close(visit: Visit) -> Done:
    """Close a breaker: all calls are allowed again."""
    answer = await Mender(visit.state.pools.operate).close(_name(visit), credential=visit.form.get("credential"))
    visit.state.nudger.nudge(DUE)
    words = {"closed": "is closed: all calls are allowed again", "was_closed": "was closed already"}
    return Done(f"The breaker of {visit.parts['name']} {words.get(answer, answer)}.", "/limits")


async def probe(visit: Visit) -> Done:
    """Let one call try now whether the upstream is back."""
    answer = await Mender(visit.state.pools.operate).probe(_name(visit), credential=visit.form.get("credential"))
    visit.state.nudger.nudge(DUE)
    return Done(f"Probe of {visit.parts['name']}: {answer}.", "/limits")


def _name(visit: Visit) -> str:
    name = visit.parts["name"]
    if "\x00" in name:
        raise UnknownLimiter("there is no such upstream")
    return name
