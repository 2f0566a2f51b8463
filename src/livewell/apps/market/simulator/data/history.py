"""`/historical-price-eod/full`: ten fields per trading day, newest first, up to the last close."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from livewell.apps.market.simulator.data.noise import unit
from livewell.apps.market.simulator.data.prices import Listing, Market
from livewell.apps.market.simulator.data.quote import SPREAD
from livewell.apps.market.simulator.data.trading_day import newest_session, previous_day, session

__all__ = ["history_rows"]

DAYS_DEFAULT = 365  # calendar days; FMP gives five years, which is 1,260 rows of 170 bytes
DAYS_MAX = 5 * 366
HIGH, LOW, VOLUME = 80, 81, 42  # the volume is the one that the day's quotes end with


def history_rows(market: Market, listing: Listing, at: int, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Answer for the days between from and to; a day is there once it has closed."""
    newest, _, closes = newest_session(at)
    day = newest if closes <= at else previous_day(newest)
    until = _date(query.get("to")) or day
    since = max(_date(query.get("from")) or day - timedelta(days=DAYS_DEFAULT), day - timedelta(days=DAYS_MAX))
    rows = []
    while day >= since:
        if day <= until:
            rows.append(_bar(market, listing, day))
        day = previous_day(day)
    return rows


def _bar(market: Market, listing: Listing, day: date) -> dict[str, Any]:
    _, opens, closes = session(day)
    first, last = market.price(listing, opens), market.price(listing, closes)
    high = round(max(first, last) * (1 + SPREAD * unit(listing.code, HIGH, opens)), 2)
    low = round(min(first, last) * (1 - SPREAD * unit(listing.code, LOW, opens)), 2)
    return {
        "symbol": listing.symbol,
        "date": day.isoformat(),
        "open": first,
        "high": high,
        "low": low,
        "close": last,
        "volume": int(listing.shares * (0.002 + 0.01 * unit(listing.code, VOLUME, opens))),
        "change": round(last - first, 2),
        "changePercent": round((last - first) / first * 100, 5),
        "vwap": round((high + low + last) / 3, 4),
    }


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
