"""Is a stored value the one that was served?

Columns have other names and types than JSON fields; nothing else may differ.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from livewell.apps.market.simulator.data.trading_day import ZONE

__all__ = ["field_of", "instant", "same"]


def field_of(column: str, fields: Mapping[str, Any]) -> str | None:
    """Find the field behind a column: day_low is dayLow, price_avg_50 is priceAvg50; None when
    there is none.
    """
    if column in fields:
        return column
    plain = column.replace("_", "").lower()
    return next((field for field in fields if field.lower() == plain), None)


def instant(value: Any) -> float | None:
    """Read a source's time as FMP writes it (Unix seconds, or New York's wall clock, or a day
    there), as Unix seconds.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return datetime.fromisoformat(value).replace(tzinfo=ZONE).timestamp()
    except (TypeError, ValueError):
        return None


def same(stored: Any, served: Any) -> bool:
    """Compare by meaning: 231.40 is 231.4, an instant is the wall clock it came from, a stored null
    may stand for an empty text.
    """
    if stored is None or served is None:
        return stored is None and served in (None, "")
    if isinstance(stored, datetime):
        return _same_instant(stored, served)
    if isinstance(stored, date):
        return isinstance(served, str) and stored.isoformat() == served[:10]
    if isinstance(stored, bool) or isinstance(served, bool):
        return stored is served
    if isinstance(stored, str) and isinstance(served, str):
        return stored == served or _same_text_instant(stored, served)
    return _same_number(stored, served)


def _same_number(stored: Any, served: Any) -> bool:
    try:
        return Decimal(str(stored)) == Decimal(str(served))
    except InvalidOperation:
        return False


def _same_instant(stored: datetime, served: Any) -> bool:
    meant = instant(served)
    if meant is None or stored.tzinfo is None:
        return False
    if isinstance(served, str) and len(served) == 10:  # a day: its midnight here or there
        return served in (stored.astimezone(UTC).date().isoformat(), stored.astimezone(ZONE).date().isoformat())
    return stored.timestamp() == meant


def _same_text_instant(stored: str, served: str) -> bool:
    """A stored instant may come as JSON: text with its offset, for a wall clock without."""
    if len(served) < 10 or not served[:4].isdecimal():
        return False
    try:
        parsed = datetime.fromisoformat(stored)
    except ValueError:
        return False
    return parsed.tzinfo is not None and _same_instant(parsed, served)
