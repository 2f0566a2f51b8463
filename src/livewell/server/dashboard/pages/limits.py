"""Will the limits hold? Rate, budget and breaker of every credential, the plan, and what to slow down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from livewell.db import Database
from livewell.errors import LivewellError, UnknownLimiter
from livewell.operations.mend import Mender
from livewell.operations.state import failed_parts
from livewell.refresh.nudges import DUE
from livewell.refresh.plan.budget import pace_of_day, plan_budget
from livewell.refresh.plan.facts import BudgetFacts, read_facts
from livewell.refresh.plan.report import Plan, document, not_fresh_words
from livewell.refresh.registry.admin import TypeAdmin
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.pages.type import reason_words
from livewell.server.dashboard.visit import Done, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts

ROWS_MAX = 100
TYPES_MAX = 50
_DAYS_MAX = 31
_ALLOWED = "SELECT livewell.now(), livewell.plan_upstreams(livewell.now(), %s)"
_WINDOWS = "SELECT * FROM livewell.list_worst_windows(%s, %s)"
_MAKING = "The plan is being made from who watches what; it is here in a few seconds."
_NO_UPSTREAM = "No upstream is applied yet: livewell types apply FILE"


async def panels(visit: Visit) -> list[Panel]:
    """The answer in words, then limits by credential, upstreams with their acts, and what to slow down."""

    async def hold() -> Loaded:
        budgets = await read_budgets(visit.database)
        sample = await visit.state.plans.look()
        planned = planned_upstreams(sample.plan)
        state = await visit.state.looks.sampler.look()
        broken = failed_parts(state.document).get("limits")
        if broken is not None:
            raise LivewellError(broken)  # without it nobody knows whether calls are stopped
        stopped = stopped_credentials(parts(state.document, "limits", "limiters"))
        found = [{**one, "plan": planned.get(one["upstream"]), **stopped(one["upstream"])} for one in budgets]
        at = sample.plan.at if sample.plan and sample.error else state.at if state.error else None
        has_failed = sample.plan is None and sample.error is not None
        data = {"upstreams": found, "plan_failed": has_failed}
        return Loaded(data, at, sample.error or state.error, is_empty=not found)

    async def limiters() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = sorted(parts(sample.document, "limits", "limiters"), key=_trouble)[:ROWS_MAX]
        windows = await _windows(visit.database, found)
        rows = [{**one, "window": windows.get((one["name"], one["credential"]))} for one in found]
        return of_sample(sample, "limits", limiters=rows, is_empty=not rows)

    async def upstreams() -> Loaded:
        found = (await Mender(visit.database).upstreams())[:ROWS_MAX]
        pausable = {one["name"] for one in await TypeAdmin(visit.database).upstreams()}
        rows = [
            {
                **_with_words(one),
                "is_upstream": one["name"] in pausable,
                "silent_until": silent_until(found, one["name"]),
            }
            for one in found
        ]
        return loaded(upstreams=rows, is_empty=not rows)

    async def slow() -> Loaded:
        sample = await visit.state.plans.look()
        if sample.plan is None:
            if sample.error is not None:
                raise LivewellError(sample.error)  # no advice is not the advice to slow down nothing
            return loaded(is_empty=True)
        planned = list(planned_upstreams(sample.plan).values())
        return Loaded({"upstreams": planned, "types_max": TYPES_MAX}, sample.plan.at, sample.error)

    return [
        Panel("hold", "Will they hold?", "limits_hold.html", hold, _NO_UPSTREAM),
        Panel("limiters", "Limits by credential", "limits_credentials.html", limiters, "No limit is declared."),
        Panel("upstreams", "Upstreams and their breakers", "limits_upstreams.html", upstreams, _NO_UPSTREAM),
        Panel("slow", "What to slow down, and what that brings", "limits_slow.html", slow, _MAKING),
    ]


async def confirm_close(visit: Visit) -> list[Panel]:
    """What closing a breaker means, before it is closed."""
    name, credential = _name(visit), visit.query.get("credential", "")

    async def load() -> Loaded:
        found = await Mender(visit.database).upstreams()
        here = [one for one in found if one["name"] == name and (one["credential"] or "") == credential]
        if not here:
            raise UnknownLimiter(f"upstream {name[:60]!r} with that credential is not stopped: nothing is to be closed")
        return loaded(upstream=_with_words(here[0]), name=name, credential=credential)

    return [Panel("close", f"The breaker of {name}", "limits_close.html", load)]


async def pause(visit: Visit) -> Done:
    """Call an upstream no more, until it is resumed."""
    name = _name(visit)
    is_new = await TypeAdmin(visit.state.pools.operate).pause(name, paused=True, upstream=True)
    said = "is paused: nothing of it is fetched until it is resumed"
    return Done(f"{name} {said if is_new else 'was paused already: nothing was changed'}.", "/limits")


async def resume(visit: Visit) -> Done:
    """End a pause, and a silence that the upstream asked for.

    The form says whether a silence was shown: one that was asked for since then is not ended unseen.
    """
    name, mender = _name(visit), Mender(visit.state.pools.operate)
    if visit.form.get("silent") == "no" and silent_until(await mender.upstreams(), name) is not None:
        return Done(f"{name} has asked for silence meanwhile: nothing was done. Look at it again.", "/limits")
    answer = await mender.resume(name)
    visit.state.nudger.nudge(DUE)
    words = {"resumed": "is called again", "not_stopped": "was neither paused nor silent: nothing was changed"}
    return Done(f"{visit.parts['name']} {words[answer]}.", "/limits")


async def close(visit: Visit) -> Done:
    """Close a breaker: all calls are allowed again."""
    answer = await Mender(visit.state.pools.operate).close(_name(visit), credential=visit.form.get("credential"))
    visit.state.nudger.nudge(DUE)
    words = {"closed": "is closed: all calls are allowed again", "was_closed": "was closed already"}
    return Done(f"The breaker of {visit.parts['name']} {words[answer]}.", "/limits")


async def probe(visit: Visit) -> Done:
    """Let one call try now whether the upstream is back."""
    answer = await Mender(visit.state.pools.operate).probe(_name(visit), credential=visit.form.get("credential"))
    visit.state.nudger.nudge(DUE)
    words = {
        "probing": "the next call tries whether it is back; if it succeeds, the breaker closes",
        "silent": "it asked for silence, so no call tries; end the silence first",
        "closed": "its breaker is closed: there is nothing to try",
    }
    return Done(f"{visit.parts['name']}: {words[answer]}.", "/limits")


def silent_until(rows: Sequence[Mapping[str, Any]], name: str) -> datetime | None:
    """When the last silence ends that an upstream asked for, with any of its credentials."""
    ends = [one["quiet_until"] for one in rows if one["name"] == name and one["quiet_until"] is not None]
    return max(ends, default=None)


async def read_budgets(database: Database) -> list[dict[str, Any]]:
    """What each upstream allows, and when its budget ends at the pace of the last day."""
    [(at, allowed)] = await database.call(_ALLOWED, (ROWS_MAX,))
    facts = read_facts({"at": at.isoformat(), "groups": [], "types": [], "upstreams": allowed, "cut": False})
    into = (at.minute * 60 + at.second) * 1.0
    return [
        {
            "upstream": one.name,
            "paused": one.paused,
            "calls_allowed": None if one.calls_per_second is None else one.calls_per_second * 60,
            "calls_last_minute": one.calls_last_minute,
            "budget": None if one.budget is None else today(one.budget, at, into),
        }
        for one in facts.upstreams
    ]


def today(facts: BudgetFacts, at: datetime, hour_seconds: float) -> dict[str, Any]:
    """A budget at the pace of the last day: burnt, and when it ends."""
    pace = pace_of_day(facts, hour_seconds)
    found = plan_budget(facts, pace)
    ends = None if found.ends_in_seconds is None else at + timedelta(seconds=found.ends_in_seconds)
    return {
        "unit": found.unit,
        "units": found.units,
        "stop": found.stop,
        "used": found.used,
        "share": found.used / found.units,
        "span_seconds": found.span_seconds,
        "per_day": pace * 86_400,
        "ends_at": ends,
        "ends_in_seconds": found.ends_in_seconds,
        "days": used_by_day(facts),
    }


def used_by_day(facts: BudgetFacts) -> list[tuple[float, str]]:
    """Units of each day, the oldest first, for bars."""
    days: dict[int, float] = {}
    for hours, units in facts.used:
        days[int(hours // 24)] = days.get(int(hours // 24), 0.0) + units
    last = min(max(days, default=-1), _DAYS_MAX - 1)
    return [(days.get(day, 0.0), "none") for day in range(last, -1, -1)]


def planned_upstreams(plan: Plan | None) -> dict[str, dict[str, Any]]:
    """The plan by upstream: as the document has it, with the words of what is not fresh."""
    if plan is None:
        return {}
    documents = document(plan)["upstreams"]
    found = {one.upstream: not_fresh_words(one) for one in plan.upstreams}
    return {
        one["upstream"]: {**one, "at": plan.at, "cut": plan.cut, "not_fresh_words": found[one["upstream"]]}
        for one in documents
    }


def stopped_credentials(limiters: Sequence[Mapping[str, Any]]) -> Callable[[str], dict[str, int]]:
    """How many credentials an upstream has, and with how many of them calls are stopped."""

    def count(upstream: str) -> dict[str, int]:
        ours = [one for one in limiters if one["name"] == upstream and one["active"]]
        stopped = [one for one in ours if one["breaker"] != "closed" or one["quiet_until"]]
        return {"credentials": len(ours), "stopped": len(stopped)}

    return count


async def _windows(database: Database, limiters: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    names = [one["name"] for one in limiters], [one["credential"] for one in limiters]
    rows = await database.call_dicts(_WINDOWS, names) if limiters else []
    return {(one["limiter"], one["credential"]): one for one in rows}


def _trouble(one: Mapping[str, Any]) -> tuple[bool, bool, float, str, str]:
    """Those in trouble come first, then those that are nearest to their limits."""
    rate = one["spent"] / one["rate_calls"] if one["rate_calls"] else 0.0
    budget = one["used"] / one["budget_units"] if one["budget_units"] else 0.0
    return not one["active"], one["breaker"] == "closed", -max(rate, budget), one["name"], one["credential"]


def _with_words(one: dict[str, Any]) -> dict[str, Any]:
    """An upstream with what opened its breaker in words, and the address of the page that closes it."""
    cause = one["cause"]
    query = urlencode({"credential": one["credential"] or ""})
    return {**one, "cause_words": reason_words(cause) if cause else "", "close_query": query}


def _name(visit: Visit) -> str:
    name = visit.parts["name"]
    if "\x00" in name:
        raise UnknownLimiter("there is no such upstream")
    return name
