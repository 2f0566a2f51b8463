"""Read cron texts: five fields and a time zone. Pure: the caller says what time it is.

Where clocks change (cronsim, as Debian's cron does it), for a text whose minute and hour are fixed,
such as "30 2 * * *":

    a local time that does not exist (02:30 in spring)      runs once, at the first moment after the gap (03:00)
    a local time that comes twice (02:30 in autumn)         runs once, the first time

A text that says "every" in its minute or hour field ("*", "*/15") goes by real time: it runs at
every such minute that exists, so 60 minutes apart stay 60 minutes apart, and an hour that comes
twice has its slots twice.

Every function here raises CronError, and nothing else, for a text or a zone that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from livewell.errors import ConfigurationError
from livewell.zones import read_zone

CRON_CHARS_MAX = 100
_SILENCE_MAX = timedelta(days=400)
_ALLOWED = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, or L for the last",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT",
}
_FIELDS = tuple(_ALLOWED)


class CronError(ConfigurationError):
    """A cron text or its time zone cannot be read, or it comes too rarely.

    `problem` is the message without the text.
    """

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(f"{what}: {problem}")
        self.problem = problem


def check_cron(cron: str, zone: str) -> None:
    """Refuse a text that cannot be read, naming the field, and one that comes less than once in 400 days."""
    check_zone(zone)
    if not isinstance(cron, str):
        raise _wrong(cron, "a text is needed, for example '0 2 * * *'")
    parts = cron.split()
    if len(cron) > CRON_CHARS_MAX or len(parts) != 5:
        raise _wrong(
            cron[:CRON_CHARS_MAX],
            f"it has {len(parts)} fields; five are right: {' '.join(_FIELDS)}, for example '0 2 * * *'",
        )
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    first = next(slots(cron, zone, begin), None)
    if first is None or first - begin > _SILENCE_MAX:
        raise _wrong(cron, "it comes less than once in 400 days; a schedule comes more often than that")


def check_zone(zone: str) -> None:
    """Refuse what is not the name of a time zone."""
    _zone(zone)


def _zone(zone: str) -> ZoneInfo:
    try:
        return read_zone(zone)
    except ValueError:
        raise CronError(
            f"zone {zone!r}",
            "there is no such time zone; write it like Europe/Paris, America/New_York or UTC",
        ) from None


def slots(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    """The slots later than this instant, in UTC."""
    local = after.astimezone(_zone(zone))
    try:
        simulated = CronSim(cron, local)
    except CronSimError as error:
        raise _wrong(cron, _field(cron.split(), str(error))) from None
    return (slot.astimezone(UTC) for slot in simulated)


def next_slot(cron: str, zone: str, after: datetime) -> datetime:
    """The first slot later than this instant, in UTC."""
    first = next(slots(cron, zone, after), None)
    if first is None:
        raise _wrong(cron, "it never comes")
    return first


def first_slot(cron: str, zone: str, now: datetime) -> tuple[datetime, timedelta]:
    """The first slot of a schedule that is new, and the gap to the one after it."""
    first = next_slot(cron, zone, now)
    return first, next_slot(cron, zone, first) - first


def _wrong(cron: str, problem: str) -> CronError:
    return CronError(f"cron {cron!r}", problem)


def _readable(day: str) -> bool:
    """True if this day-of-month is one in some month."""
    try:
        CronSim(f"0 0 {day} * *", datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError:
        return False
    return True


def _field(parts: list[str], said: str) -> str:
    """Name the field and its text: cronsim says only "Bad minute"."""
    for place, name in enumerate(_FIELDS):
        if said.lower().endswith(name):
            if name == "day-of-month" and _readable(parts[place]):
                return f"the {name} field is {parts[place]!r}, and no month of {parts[3]!r} has that day"
            return (
                f"the {name} field is {parts[place]!r}, which cannot be read; allowed are {_ALLOWED[name]}, *, "
                "lists (1,2), ranges (1-5) and steps (*/5)"
            )
    return f"{said}; five fields are right: {' '.join(_FIELDS)}"
