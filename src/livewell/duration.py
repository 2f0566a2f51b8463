"""Durations as people write them.

30, 1.5, "30s", "5m", "2h", "1d", "250ms", or a timedelta. Pure.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta

from livewell.errors import InvalidOption

Duration = float | int | str | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)")


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
