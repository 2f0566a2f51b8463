"""Durations and times as people write them. Pure.

30, 1.5, "30s", "5m", "2h", "1d", "250ms", or a timedelta; for a time also how long ago, "2h", or an
instant, "2026-11-16 03:00", which is UTC unless it names a zone.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from livewell.errors import InvalidOption

Duration = float | int | str | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)", re.ASCII)
AGO_SECONDS_MAX = 3660 * 86400.0
_WHEN = "write an age such as 90s, 30min, 2h or 7d, or a time such as 2026-11-16 03:00 (UTC, unless it names a zone)"


def moment(what: str, text: str) -> datetime | float:
    """A time as somebody wrote it: an instant in UTC, or how many seconds ago by the database's clock."""
    written = text.strip().removesuffix(" ago")
    if _WRITTEN.fullmatch(written):
        ago = seconds(written, what)
        if ago > AGO_SECONDS_MAX:
            raise InvalidOption(f"{what} {text[:60]!r}: at most ten years ago")
        return ago
    try:
        at = datetime.fromisoformat(written)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidOption(f"{what} {text[:60]!r}: {_WHEN}") from None


def seconds(value: Duration, what: str = "duration") -> float:
    """The number of seconds.

    Anything unclear, negative or not finite is refused with what is allowed.
    """
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, str):
        match = _WRITTEN.fullmatch(value.strip())
        number = float(match[1]) * _UNITS[match[2]] if match else math.nan
    elif isinstance(value, bool):
        number = math.nan
    else:
        number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise InvalidOption(
            f'{what} {value!r}: allowed are seconds from 0 on, or text such as "30s", "5m", "2h", "1d", "250ms"'
        )
    return number
