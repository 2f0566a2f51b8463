"""Times as upstreams write them, as instants. Pure.

A time without an offset is in the zone that the type file states. Where the clocks were put back
such a time happens twice: the earlier is taken, so that it is never in the future. Where they were
put forward it never happened: it is read with the offset from before the change, as Postgres does.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from livewell.refresh.definition.model import TimeFormat

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s?(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_FIRST = datetime(1900, 1, 1, tzinfo=UTC)  # earlier and later ones are mistakes, and overflow when moved between zones
_LAST = datetime(9000, 1, 1, tzinfo=UTC)


class TimeError(ValueError):
    """It is not a time in that format."""


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def parse_date(value: object) -> date:
    """YYYY-MM-DD and nothing else."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise TimeError("a date as YYYY-MM-DD")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise TimeError("a date that exists") from None


def parse_instant(value: object, form: TimeFormat, zone: str) -> datetime:
    """The instant, in UTC; a date is its first moment in the zone."""
    try:
        if form in ("unix_seconds", "unix_millis"):
            found = _unix(value, 1000 if form == "unix_millis" else 1)
        elif form == "date":
            day = parse_date(value)
            found = datetime(day.year, day.month, day.day, tzinfo=_zone(zone)).astimezone(UTC)
        else:
            found = _written(value, zone)
    except (ValueError, OverflowError) as error:
        raise error if isinstance(error, TimeError) else TimeError("a time that exists") from None
    if not _FIRST <= found <= _LAST:
        raise TimeError("a time between the years 1900 and 9000")
    return found


def end_of_day(value: object, zone: str) -> datetime:
    """When a date has passed: the first moment of the next day."""
    day = parse_date(value)
    try:
        return parse_instant((day + timedelta(days=1)).isoformat(), "date", zone)
    except OverflowError:
        raise TimeError("a date that exists") from None


def _unix(value: object, per_second: int) -> datetime:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or value <= 0 or value > 10**15:
        raise TimeError("a positive number of seconds or milliseconds since 1970")
    micros = int(Decimal(value) * (1_000_000 // per_second))
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _written(value: object, zone: str) -> datetime:
    match = _DATETIME.fullmatch(value) if isinstance(value, str) and len(value) <= 40 else None
    if match is None:
        raise TimeError("a time as YYYY-MM-DD HH:MM:SS")
    clock = match[2] if "." not in match[2] else f"{match[2]:0<15}"  # 3.11 reads .123456, not every .1
    offset = match[3] or ""
    if offset and offset != "Z" and ":" not in offset:
        offset = f"{offset[:3]}:{offset[3:]}"
    found = datetime.fromisoformat(f"{match[1]}T{clock}{offset}")
    return (found if offset else found.replace(tzinfo=_zone(zone))).astimezone(UTC)
