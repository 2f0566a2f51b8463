"""What is leaving? Sinks with trouble first, who waits longest, relays, replays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from livewell.outbox.admin import OutboxAdmin
from livewell.outbox.stuck import LATE_SECONDS
from livewell.server.dashboard.pages.overview import of_sample
from livewell.server.dashboard.pages.queues import Trouble
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts
from livewell.telemetry.system_state import Document
from livewell.words import number, span

_FAILING_SHARE = 0.1  # of what a sink answers: more is trouble
_RANKS = {"bad": 0, "warn": 1, "fresh": 2, "none": 3}
_AWAY_SECONDS = 60.0
NO_SINK = "No sink is declared: nothing leaves. A program declares one with app.outbox.sink(…)."

NO_REPLAY = "Nothing was replayed lately. A replay begins with: livewell outbox replay begin SINK --from TIME"


async def panels(visit: Visit) -> list[Panel]:
    """All sinks together, a look-up, each sink, tenants, relays, replays."""
    sampler = visit.state.looks.sampler

    async def now() -> Loaded:
        sample = await sampler.look()
        sinks = by_trouble(sample.document)
        tenants = parts(sample.document, "outbox", "tenants")
        return of_sample(sample, "outbox", totals=totals(sinks), worst=tenants[:1], is_empty=not sinks)

    async def look() -> Loaded:
        return loaded()

    async def sinks() -> Loaded:
        sample = await sampler.look()
        found = by_trouble(sample.document)
        return of_sample(sample, "outbox", sinks=found, is_empty=not found)

    async def tenants() -> Loaded:
        sample = await sampler.look()
        found = parts(sample.document, "outbox", "tenants")
        return of_sample(sample, "outbox", tenants=found, turns=turns(sample.document), is_empty=not found)

    async def relays() -> Loaded:
        sample = await sampler.look()
        found = parts(sample.document, "outbox", "relays")
        worst = sorted(found, key=lambda one: (one["lease_left_seconds"] > 0, one["sink"], one["id"]))
        others = max(0, len(found) - PAGE_ROWS)
        return of_sample(sample, "outbox", relays=worst[:PAGE_ROWS], others=others, sink=None, is_empty=not found)

    async def replays() -> Loaded:
        found = await admin(visit).replays(limit=PAGE_ROWS)
        return loaded(replays=found, is_empty=not found)

    nobody = "No relay lives. Start one with: livewell worker, or livewell outbox relay"
    return [
        Panel("now", "Now", "outbox_now.html", now, NO_SINK, wide=False),
        Panel("look", "Find", "outbox_look.html", look, wide=False),
        Panel("sinks", "Sinks, the ones with trouble first", "outbox_sinks.html", sinks, NO_SINK),
        Panel("tenants", "Who waits longest", "outbox_tenants.html", tenants, "No event waits."),
        Panel("relays", "Relays", "outbox_relays.html", relays, nobody),
        Panel("replays", "Replays", "outbox_replays.html", replays, NO_REPLAY),
    ]


async def overview(visit: Visit) -> list[Panel]:
    """A panel on the first page."""

    async def load() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        sinks = by_trouble(sample.document)
        return of_sample(sample, "outbox", totals=totals(sinks), worst=sinks[:1], is_empty=not sinks)

    return [Panel("outbox", "Outbox", "overview_outbox.html", load, NO_SINK, wide=False)]


async def look(visit: Visit) -> Elsewhere:
    """An event by the id that somebody typed."""
    return Elsewhere(f"/outbox/events/{quote(visit.asked('event') or '0', safe='')}")


async def pause(visit: Visit) -> Done:
    """Send a sink nothing more; what is on its way may end."""
    name = visit.parts["name"]
    if not await acting(visit).pause(name):
        return Done(f"{name} was paused already: nothing was changed.", _back(name))
    return Done(f"{name} is paused: what is on its way may end, nothing more is sent.", _back(name))


async def cancel_replay(visit: Visit) -> Done:
    """Send nothing more of a replay; what was fed is delivered."""
    replay = visit.number("id")
    if not await acting(visit).cancel_replay(replay):
        return Done(f"Replay {replay} had ended already: nothing was changed.", "/outbox")
    return Done(f"Replay {replay} is cancelled: what was sent again stays sent.", "/outbox")


async def resume(visit: Visit) -> Done:
    """Send to it again."""
    name = visit.parts["name"]
    is_new = await acting(visit).resume(name)
    return Done(f"{name} {'goes on' if is_new else 'was not paused: nothing was changed'}.", _back(name))


def admin(visit: Visit) -> OutboxAdmin:
    """For looking."""
    return OutboxAdmin(visit.database, visit.state.nudger)


def acting(visit: Visit) -> OutboxAdmin:
    """For acts."""
    return OutboxAdmin(visit.state.pools.operate, visit.state.nudger)


def by_trouble(document: Document) -> list[dict[str, Any]]:
    """Sinks with what is wrong with each: the worst first, then those whose oldest event waits longest."""
    found = [{**one, "trouble": trouble(one)} for one in parts(document, "outbox", "sinks")]
    return sorted(found, key=lambda one: (_RANKS[one["trouble"].tone], -(one["oldest_seconds"] or 0), one["name"]))


def trouble(one: Mapping[str, Any]) -> Trouble:
    """The first thing that is wrong with a sink, as the system state describes it; else what it does."""
    for words, tone in _troubles(one):
        return Trouble(words, tone)
    if one["away_since"]:
        return Trouble("is being opened", "none")
    works = one["delivered_per_minute"] or one["in_flight"]
    return Trouble("delivers" if works else "idle", "fresh" if works else "none")


def _troubles(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong in words, and how bad that is: what hides the rest first."""
    waits, failing = one["oldest_seconds"] or 0, one["other_per_minute"]
    if one["paused_at"]:
        yield "paused, and events wait" if one["has_waiting"] else "paused", "warn"
    if one["away_since"] and one["away_seconds"] > _AWAY_SECONDS:
        yield f"away for {span(one['away_seconds'])}", "bad"
    if one["has_waiting"] and not one["shards"] and waits > _AWAY_SECONDS:
        yield "nobody claims outside" if one["outside"] else "no relay is there", "bad"
    if waits > LATE_SECONDS:
        yield f"the oldest waits {span(waits)}", "bad"
    if one["parked"]:
        yield f"{number(one['parked'])} {'key waits' if one['parked'] == 1 else 'keys wait'} for a person", "warn"
    if failing and failing / (one["delivered_per_minute"] + failing) > _FAILING_SHARE:
        yield f"{number(failing)} fail a minute", "warn"


def totals(sinks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of all sinks together."""
    names = ("waiting", "aside", "in_flight", "parked", "dead", "relays", "delivered_per_minute", "other_per_minute")
    oldest = max((one["oldest_seconds"] or 0 for one in sinks), default=0)
    return {**{name: sum(one[name] for one in sinks) for name in names}, "oldest_seconds": oldest or None}


def turns(document: Document) -> list[dict[str, Any]]:
    """Sinks at which a tenant may have to wait for more than one claim until its turn."""
    return [one for one in parts(document, "outbox", "sinks") if one["claims_until_turn"] > 1]


def _back(name: str) -> str:
    return f"/outbox/sinks/{quote(name, safe='')}"
