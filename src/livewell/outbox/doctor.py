"""Does everything leave?

Checks of the doctor: sinks that take nothing, that nobody relays to or that are paused, keys that
wait for a person, dead letters, days without a partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livewell.finding import Check, Finding, Patient, instant, span
from livewell.outbox.stuck import waiting_words
from livewell.telemetry.system_state import part

_AWAY_SECONDS = 60.0
_WAIT_SECONDS_MAX = 60.0
_REASONS = {
    "attempts": "every attempt failed",
    "refused": "the sink refused it for good",
    "lost": "it took too many relays with it",
}
_DEAD = """
SELECT s.name AS sink, x.topic, x.reason, count(*) AS n, max(x.detail) AS detail
FROM (
    SELECT d.sink, d.topic, d.reason, d.detail FROM livewell.dead_event d
    WHERE d.died_at > livewell.now() - interval '1 day' ORDER BY d.died_at DESC LIMIT 10000
) x
JOIN livewell.event_sink s ON s.id = x.sink
GROUP BY s.name, x.topic, x.reason ORDER BY count(*) DESC LIMIT 20
"""
_PARKED = """
SELECT s.name AS sink, count(*) AS n, min(x.since) AS since, (array_agg(x.number ORDER BY x.since, x.number))[1] AS first
FROM livewell.event_sink s
CROSS JOIN LATERAL (
    SELECT b.since, b.number FROM livewell.event_block b
    WHERE b.sink = s.id AND b.retry_at = 'infinity' AND b.state = 'parked' LIMIT 1000
) x
GROUP BY s.name ORDER BY s.name LIMIT 100
"""


async def sinks(patient: Patient) -> Sequence[Finding]:
    """Sinks that take nothing now, and why."""
    outbox = part(patient.state, "outbox")
    found = (_sink(one, outbox.get("how")) for one in outbox.get("sinks", ()))
    return [one for one in found if one is not None]


def _sink(one: dict[str, Any], how: object) -> Finding | None:
    name, waits = one["name"], one["oldest_seconds"] or 0
    seen = f"{waiting_words(one, how)} events wait for sink {name}, the oldest for {span(waits)}."
    if one["paused_at"]:
        if not one["has_waiting"] or waits < _WAIT_SECONDS_MAX:
            return None
        means = f"The sink is paused since {instant(one['paused_at'])}: no alert tells that its events are late."
        return Finding("sink_paused", name, seen, means, f"livewell outbox resume {name}", level="P2")
    if (one["away_seconds"] or 0) > _AWAY_SECONDS:
        return Finding(
            "sink_away",
            name,
            f"None of the {one['relays']:,} relays of sink {name} has reached it for {span(one['away_seconds'])}: "
            f"{(one['away_reason'] or 'no reason given')[:200]}",
            "Nothing is delivered to it. No event is blamed: they wait, and go in order when it is back.",
            f"mend the receiver, or its address and login where the relays run; then look: livewell outbox sinks show {name}",
        )
    if one["has_waiting"] and waits > _WAIT_SECONDS_MAX and not one["shards"]:
        return _without_relay(one, seen)
    return None


def _without_relay(one: dict[str, Any], seen: str) -> Finding:
    name = one["name"]
    if one["outside"]:
        means = "Programs outside claim its events (outbox_claim), and none of them holds a lease."
        command = f"start the program that claims from sink {name}; who did: livewell outbox sinks show {name}"
    else:
        means = f"No living process relays to it: none runs, or none of those that do knows sink {name} of kind {one['kind']}."
        command = f"livewell worker APP (the app that declares sink {name}, or with LIVEWELL_SINKS that names it)"
    return Finding("sink_without_relay", name, seen, means, command, level="P0")


async def parked(patient: Patient) -> Sequence[Finding]:
    """Keys of which nothing goes until a person has decided about a dead letter."""
    return [
        Finding(
            "keys_parked",
            row["sink"],
            f"{row['n']:,}{' or more' if row['n'] >= 1000 else ''} keys of sink {row['sink']} are parked, the first "
            f"since {instant(row['since'].isoformat())}, behind event {row['first']}.",
            "Later events of these keys wait behind a dead letter, because their topic says so (on_dead = park).",
            f"livewell outbox blocks --sink {row['sink']} --state parked, then: livewell outbox dead redrive --sink {row['sink']}",
            level="P2",
        )
        for row in await patient.rows(_PARKED)
    ]


async def dead_letters(patient: Patient) -> Sequence[Finding]:
    """Events that died in the last day, by sink, topic and reason."""
    return [
        Finding(
            "outbox_dead",
            row["sink"],
            f"{row['n']:,} events {row['topic']} became dead letters of sink {row['sink']} in the last day "
            f"({row['reason']}: {_REASONS[row['reason']]}), one with: {(row['detail'] or 'no text')[:200]}",
            "They will not be delivered by themselves. Mend the cause first, then redrive them.",
            f"livewell outbox dead list --sink {row['sink']}, then: livewell outbox dead redrive --sink {row['sink']}",
        )
        for row in await patient.rows(_DEAD)
    ]


async def days(patient: Patient) -> Sequence[Finding]:
    """Today's or tomorrow's partitions, where they are missing."""
    missing = part(patient.state, "outbox").get("days", {}).get("missing", ())
    if not missing:
        return []
    return [
        Finding(
            "event_day_missing",
            missing[0],
            f"There is no partition {', '.join(missing)}.",
            "From the beginning of that day (UTC) every emission fails, and so does the transaction that emits.",
            "livewell worker APP (it makes them when it starts, and once an hour)",
            level="P0",
        )
    ]


CHECKS: tuple[Check, ...] = (
    sinks,
    parked,
    dead_letters,
    days,
)
