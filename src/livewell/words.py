"""Numbers, lengths of time, ages and sizes, as the command line and the dashboard write them. Pure."""

from __future__ import annotations

from datetime import datetime

_SPANS = ((86400, "d"), (3600, "h"), (60, "min"))
_SIZES = ((1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


def number(value: float | None) -> str:
    """12,345; nothing for None."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def span(seconds: float | None) -> str:
    """A length of time in one unit: 3 s, 12 min, 2 h, 5 d."""
    if seconds is None:
        return ""
    for size, unit in _SPANS:
        if round(abs(seconds) / size, 2) >= 1:  # 3,599 s are 1 h, not 60 min
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if abs(seconds) >= 1 or seconds == 0 else f"{seconds:.1f} s"


def age(then: datetime | None, now: datetime) -> str:
    """3 s ago, or in 5 min, by the database's clock."""
    if then is None:
        return ""
    seconds = (now - then).total_seconds()
    return f"in {span(-seconds)}" if seconds < 0 else f"{span(seconds)} ago"


def size(count: float | None) -> str:
    """Bytes in decimal units: 950 B, 1.2 MB, 20 GB."""
    if count is None:
        return ""
    for least, unit in _SIZES:
        if abs(count) >= least:
            return f"{count / least:.1f} {unit}".replace(".0 ", " ")
    return f"{count:.0f} B"


def share(part: float | None) -> str:
    """A share of one as percent: 97 %, 0.4 %, < 0.1 %."""
    if part is None:
        return ""
    if 0 < part < 0.0005:
        return "< 0.1 %"
    return f"{part * 100:.1f} %" if 0 < part < 0.01 or 0.99 < part < 1 else f"{part * 100:.0f} %"
