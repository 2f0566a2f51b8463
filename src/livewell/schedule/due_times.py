"""When a schedule is due: cron texts with a zone, intervals, one-offs; and which of several missed slots run. Pure: the database says what time it is.

Where clocks change (cronsim, as Debian's cron does it), for a text whose minute and hour are fixed, such as "30 2 * * *":

    a local time that does not exist (02:30 in spring)      runs once, at the first moment after the gap (03:00)
    a local time that comes twice (02:30 in autumn)         runs once, the first time

A text that says "every" in its minute or hour field ("*", "*/15") goes by real time: it runs at every such minute that exists, so 60 minutes apart stay 60 minutes apart, and
an hour that comes twice has its slots twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from livewell.errors import ConfigurationError
from livewell.zones import read_zone

Missed = Literal["skip", "once", "all"]
Kind = Literal["cron", "interval", "once"]

CRON_CHARS_MAX = 100
CATCH_UP_MAX = 100  # slots that missed="all" runs after an outage: the latest ones
ON_TIME = timedelta(minutes=1)  # so late, and less than its gap, a slot has not been missed
_STEPS_MAX = 2_000  # of a cron text, one after another: 60 ms; who was away for longer is told "at least so many"
_SILENCE_MAX = timedelta(days=400)
_ALLOWED = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, or L for the last",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT",
}
_FIELDS = tuple(_ALLOWED)


@dataclass(frozen=True, slots=True)
class Rule:
    """When it is due."""

    kind: Kind
    cron: str | None = None
    zone: str | None = None
    every: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with the slots that have come: skip `skipped` of them up to `skipped_last`, run `slot` (None: none of them), go on with `after` (None: it has ended)."""

    slot: datetime | None
    after: datetime | None
    gap: timedelta
    skipped: int = 0
    skipped_last: datetime | None = None


def check_cron(cron: str, zone: str) -> None:
    """Refuse what cannot be read, naming the field, and what comes less than once in 400 days."""
    check_zone(zone)
    if not isinstance(cron, str):
        raise ConfigurationError(f"cron {cron!r}: a text is needed, for example '0 2 * * *'")
    parts = cron.split()
    if len(cron) > CRON_CHARS_MAX or len(parts) != 5:
        raise ConfigurationError(
            f"cron {cron[:CRON_CHARS_MAX]!r}: it has {len(parts)} fields; five are right: {' '.join(_FIELDS)}, for example '0 2 * * *'"
        )
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        first = next_slot(cron, zone, begin)
    except CronSimError as error:
        raise ConfigurationError(f"cron {cron!r}: {_field(parts, str(error))}") from None
    except StopIteration:
        first = None
    if first is None or first - begin > _SILENCE_MAX:
        raise ConfigurationError(f"cron {cron!r}: it comes less than once in 400 days; use at=… for a single run")


def check_zone(zone: str) -> None:
    """Refuse what is not the name of a time zone."""
    try:
        read_zone(zone)
    except ValueError:
        raise ConfigurationError(
            f"zone {zone!r}: there is no such time zone; write it like Europe/Paris, America/New_York or UTC"
        ) from None


def next_slot(cron: str, zone: str, after: datetime) -> datetime:
    """The first slot later than this instant, in UTC."""
    return next(_slots(cron, zone, after))


def first_slot(cron: str, zone: str, now: datetime) -> tuple[datetime, timedelta]:
    """Of a schedule that is new, with the gap to the one after it."""
    slots = _slots(cron, zone, now)
    first = next(slots)
    return first, next(slots) - first


def plan(rule: Rule, missed: Missed, due: datetime, now: datetime) -> Plan:
    """Which of the slots from `due` (which has come) up to now runs next.

    In UTC throughout: Python adds and subtracts wall-clock time within any other zone, and the database's session may live in one.
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
    for slot in _slots(rule.cron, rule.zone, due):
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
        for slot in _slots(cron, zone, begin):
            if slot > now:
                break
            found.append(slot)
        if len(found) == CATCH_UP_MAX or begin == due:
            return list(found)
        window *= 2


def _slots(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    return (slot.astimezone(UTC) for slot in CronSim(cron, after.astimezone(ZoneInfo(zone))))


def _readable(day: str) -> bool:
    """Whether this day-of-month is one in some month."""
    try:
        CronSim(f"0 0 {day} * *", datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError:
        return False
    return True


def _field(parts: list[str], said: str) -> str:
    """cronsim says "Bad minute"; a reader wants to see which text that was."""
    for place, name in enumerate(_FIELDS):
        if said.lower().endswith(name):
            if name == "day-of-month" and _readable(parts[place]):
                return f"the {name} field is {parts[place]!r}, and no month of {parts[3]!r} has that day"
            return f"the {name} field is {parts[place]!r}, which cannot be read; allowed are {_ALLOWED[name]}, *, lists (1,2), ranges (1-5) and steps (*/5)"
    return f"{said}; five fields are right: {' '.join(_FIELDS)}"
