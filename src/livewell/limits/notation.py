"""Limits as people write them: "300/min", "20GB/30d", "5000 calls/day", "10%".

Pure; anything unclear is refused with what is allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import time

from livewell.duration import seconds
from livewell.errors import ConfigurationError, InvalidOption
from livewell.zones import read_zone

_RATE = re.compile(r"(\d+)\s*(?:calls\s*)?/\s*(\d+(?:\.\d+)?\s*)?(ms|sec|s|minute|min|m|hour|h|day|d)")
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|calls|tokens)\s*/\s*(day|\d+(?:\.\d+)?\s*(?:h|d))")
_RESET = re.compile(r"(\d{1,2}):(\d{2})(?:\s+(\S+))?")
_SECONDS = {"sec": "s", "minute": "min", "hour": "h", "day": "d"}
_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in any window of so many seconds."""

    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Budget:
    """So many units in a rolling span of seconds; without a span, in a day."""

    units: int
    unit: str
    seconds: float | None


def rate(text: str, what: str) -> Rate:
    """Read "300/min", "5/s", "100/10s"."""
    match = _RATE.fullmatch(str(text).strip())
    if match is None:
        raise ConfigurationError(f'{what}: rate {text!r}: write it like "300/min", "5/s" or "100/10s"')
    span = seconds(f"{(match[2] or '1').strip()}{_SECONDS.get(match[3], match[3])}", "rate")
    calls = int(match[1])
    if not (1 <= calls <= 1_000_000 and 0.1 <= span <= 86400):
        raise ConfigurationError(
            f"{what}: rate {text!r}: 1 to 1,000,000 calls in a window of 100 ms to a day are allowed"
        )
    return Rate(calls, span)


def budget(text: str, what: str) -> Budget:
    """Read "20GB/30d" (a rolling span) or "5000 calls/day" (a day that begins at budget_resets)."""
    match = _BUDGET.fullmatch(str(text).strip())
    if match is None:
        raise ConfigurationError(
            f'{what}: budget {text!r}: write it like "20GB/30d" (rolling) or "5000 calls/day"; units are B, KB, '
            "MB, GB, TB, calls, tokens"
        )
    units = round(float(match[1]) * _BYTES.get(match[2], 1))
    span = None if match[3] == "day" else seconds(match[3].replace(" ", ""), "budget")
    if not 1 <= units <= 2**62 or (span is not None and not 3600 <= span <= 400 * 86400):
        raise ConfigurationError(f"{what}: budget {text!r}: 1 to 2⁶² units, over 1 hour to 400 days, are allowed")
    return Budget(units, "bytes" if match[2] in _BYTES else match[2], span)


def resets(text: str, what: str) -> tuple[time, str]:
    """Read "00:00" (UTC) or "17:30 America/New_York"."""
    match = _RESET.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        zone = match[3] or "UTC"
        read_zone(zone)
        return time(int(match[1]), int(match[2])), zone
    except ValueError:
        raise ConfigurationError(
            f'{what}: budget_resets {text!r}: write it like "00:00" or "17:30 America/New_York"'
        ) from None


def share(value: float | str, what: str, *, below: float = 1.0) -> float:
    """Read "10%" or 0.1."""
    text = str(value).strip()
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= below:
        raise ConfigurationError(f'{what} {value!r}: a share from 0 to {below:g} is allowed, or "0%" to "{below:.0%}"')
    return number


def positive(value: int | None, what: str, *, required: bool = False) -> int | None:
    """A whole number from 1 on, or none."""
    if value is None and not required:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100_000:
        raise ConfigurationError(f"{what} {value!r}: 1 to 100,000 are allowed{'' if required else ', or None'}")
    return value


def span(value: float | str, what: str, least: float, most: float) -> float:
    """A duration between two bounds, in seconds."""
    try:
        number = seconds(value, what)
    except InvalidOption as error:
        raise ConfigurationError(str(error)) from None
    if not least <= number <= most:
        raise ConfigurationError(f"{what} {value!r}: {least:g} to {most:g} seconds are allowed")
    return number
