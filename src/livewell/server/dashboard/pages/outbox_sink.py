"""Does this sink take everything? Its policy and state, tenants, blocked keys, dead letters, relays."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.pages.outbox import admin, by_trouble
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts

_TENANTS_MAX = 20
_STATES = {
    "failed": "not delivered, tried again",
    "sending": "on its way, and it takes long",
    "parked": "waits for a person",
    "draining": "goes now, in order",
}
_TONES = {"failed": "warn", "sending": "none", "parked": "bad", "draining": "fresh"}


async def panels(visit: Visit) -> list[Panel]:
    """What it is, who waits, what is blocked, what died, who delivers."""
    name = visit.parts["name"]
    policy = await admin(visit).sink(name, tenants=_TENANTS_MAX)
    sampler = visit.state.looks.sampler
    state = visit.asked("state", among=tuple(_STATES))

    async def now() -> Loaded:
        sample = await sampler.look()
        found = [one for one in by_trouble(sample.document) if one["name"] == name]
        fair = max(policy["fair_share"], key=lambda one: one["claims"], default=None)
        return of_sample(sample, "outbox", sink=found[0] if found else None, policy=policy, fair=fair)

    async def tenants() -> Loaded:
        found = policy["lag"]
        return loaded(tenants=found, is_all=all(one["is_all"] for one in found), is_empty=not found)

    async def blocks() -> Loaded:
        page = await admin(visit).blocks(sink=name, state=state, after=visit.text_after or None, limit=PAGE_ROWS)
        rows = [{**one, "error": one["reason"]} for one in page.rows]
        query = urlencode({"state": state} if state else {})
        return loaded(
            blocks=rows,
            name=name,
            states=_STATES,
            tones=_TONES,
            state=state,
            query=query,
            next=None if page.next is None else cursor(page.next),
            is_empty=not rows and page.next is None and state is None,
        )

    async def dead() -> Loaded:
        found = [one for one in await admin(visit).dead_groups() if one["sink"] == name]
        return loaded(groups=[with_filter(one) for one in found], is_empty=not found)

    async def relays() -> Loaded:
        sample = await sampler.look()
        found = [one for one in parts(sample.document, "outbox", "relays") if one["sink"] == name]
        others = max(0, len(found) - PAGE_ROWS)
        return of_sample(sample, "outbox", relays=found[:PAGE_ROWS], others=others, sink=name, is_empty=not found)

    nobody = "No relay lives. Start one with: livewell worker, or livewell outbox relay"
    outside = "Nobody outside holds a lease: a program claims with livewell.outbox_claim()."
    return [
        Panel("now", f"Sink {name}", "outbox_sink.html", now),
        Panel("tenants", "Tenants that wait longest", "outbox_lag.html", tenants, "No event waits."),
        Panel("blocks", "Keys that wait", "outbox_blocks.html", blocks, "No key is blocked: all of them flow."),
        Panel("dead", "Dead letters", "outbox_dead_groups.html", dead, "It took every event in the end."),
        Panel("relays", "Relays", "outbox_relays.html", relays, outside if policy["outside"] else nobody),
    ]


def with_filter(one: dict[str, Any]) -> dict[str, Any]:
    """A group of dead letters with what makes it, as fields and as an address."""
    own = {name: one[name] for name in ("sink", "topic", "reason")}
    return {**one, "filter": own, "link": f"/outbox/dead?{urlencode(own)}"}
