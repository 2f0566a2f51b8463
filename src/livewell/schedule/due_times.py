"""When a schedule is due, and which of several missed slots run.

A schedule is due by a cron text (cron.py), every so often, or once. Pure: the database says what
time it is.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from livewell.schedule.cron import next_slot, slots

Missed = Literal["skip", "once", "all"]
Kind = Literal["cron", "interval", "once"]

CATCH_UP_MAX = 100  # slots that missed="all" runs after an outage: the latest ones
ON_TIME = timedelta(minutes=1)  # so late, and less than its gap, a slot has not been missed
_STEPS_MAX = 2_000  # of a cron text, one after another: 60 ms; who was away for longer is told "at least so many"


@dataclass(frozen=True, slots=True)
class Rule:
    """When a schedule is due."""

    kind: Kind
    cron: str | None = None
    zone: str | None = None
    every: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with the slots that have come.

    Skip `skipped` of them up to `skipped_last`, run `slot` (None: none of them), go on with `after`
    (None: it has ended).
    """

    slot: datetime | None
    after: datetime | None
    gap: timedelta
    skipped: int = 0
    skipped_last: datetime | None = None


def plan(rule: Rule, missed: Missed, due: datetime, now: datetime) -> Plan:
    """Which of the slots from `due` (which has come) up to now runs next.

    In UTC throughout: Python adds and subtracts wall-clock time within any other zone, and the
    database's session may live in one.
    """
    due, now = due.astimezone(UTC), now.astimezone(UTC)
    if rule.kind == "once":
        return _plan_once(missed, due, now)
    come, n, after = _come_interval(rule, due, now) if rule.kind == "interval" else _come_cron(rule, due, now)
    gap = min(after - come[-1], come[-1] - come[-2] if len(come) > 1 else after - come[-1])
    if missed == "skip" and now - come[-1] > min(ON_TIME, gap):
        return Plan(None, after, gap, n, come[-1])
    if missed != "all" or len(come) == 1:
        return Plan(come[-1], after, gap, n - 1, come[-2] if n > 1 else None)
    # The oldest that is still worth it; the others come with the next turns.
    before = n - len(come)
    return Plan(come[0], come[1], gap, before, come[0] - timedelta(microseconds=1) if before else None)


def _plan_once(missed: Missed, due: datetime, now: datetime) -> Plan:
    if missed == "skip" and now - due > ON_TIME:
        return Plan(None, None, timedelta(0), 1, due)
    return Plan(due, None, timedelta(0))


def _come_interval(rule: Rule, due: datetime, now: datetime) -> tuple[list[datetime], int, datetime]:
    """The last slots that have come, how many have, and the first that has not."""
    assert rule.every is not None  # noqa: S101 - of an interval
    n = (now - due) // rule.every + 1
    return (
        [due + rule.every * k for k in range(max(0, n - CATCH_UP_MAX), n)],
        n,
        due + rule.every * n,
    )


def _come_cron(rule: Rule, due: datetime, now: datetime) -> tuple[list[datetime], int, datetime]:
    """The same for a cron text."""
    assert rule.cron is not None and rule.zone is not None  # noqa: S101, PT018 - of a cron text
    come, n = deque([due], CATCH_UP_MAX), 1
    for slot in slots(rule.cron, rule.zone, due):
        if slot > now:
            return list(come), n, slot
        if n >= _STEPS_MAX:
            break
        come.append(slot)
        n += 1
    return _recent(rule.cron, rule.zone, due, now), n, next_slot(rule.cron, rule.zone, now)


def _recent(cron: str, zone: str, due: datetime, now: datetime) -> list[datetime]:
    """The last slots up to now, found from a window that is doubled until it holds enough."""
    window = timedelta(hours=2)
    while True:
        begin = max(due, now - window)
        found: deque[datetime] = deque(maxlen=CATCH_UP_MAX)
        for slot in slots(cron, zone, begin):
            if slot > now:
                break
            found.append(slot)
        if len(found) == CATCH_UP_MAX or begin == due:
            return list(found)
        window *= 2
