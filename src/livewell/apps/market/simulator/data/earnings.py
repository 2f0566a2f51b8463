"""`/earnings`: seven fields per report.

One announced report is ahead; its actual figures are null until it happens.

lastUpdated moves with the calendar for the report ahead, and stops on the day after a report for
those behind.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from livewell.apps.market.simulator.data.noise import unit
from livewell.apps.market.simulator.data.prices import Listing

__all__ = ["earnings_rows"]

LIMIT_DEFAULT = 20
LIMIT_MAX = 1_000
FIRST_YEAR = 1990
DAY, SURPRISE, SALES, GUESS = 70, 71, 72, 73


def earnings_rows(listing: Listing, at: int, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Answer /earnings, newest first."""
    today = datetime.fromtimestamp(at, UTC).date()
    limit = min(int(query["limit"]) if query.get("limit", "").isdecimal() else LIMIT_DEFAULT, LIMIT_MAX)
    number = (today.year + 1 - FIRST_YEAR) * 4
    rows: list[dict[str, Any]] = []
    while len(rows) < limit and number >= 0:
        row = _row(listing, number, today)
        number -= 1
        if row is not None:
            rows.append(row)
    return rows


def _row(listing: Listing, number: int, today: date) -> dict[str, Any] | None:
    """Make the report of one quarter, counted from FIRST_YEAR.

    None when it is not announced yet.
    """
    reported = _day(listing, number)
    if _day(listing, number - 1) > today:
        return None  # only the next one is announced
    code = listing.code
    expected = round(listing.base_price * (0.01 + 0.01 * unit(code, GUESS, number)), 2)
    sales = round(listing.base_price * listing.shares * 0.08 * (0.9 + 0.2 * unit(code, SALES, number)))
    done = reported <= today
    return {
        "symbol": listing.symbol,
        "date": reported.isoformat(),
        "epsActual": round(expected * (0.9 + 0.25 * unit(code, SURPRISE, number)), 2) if done else None,
        "epsEstimated": expected,
        "revenueActual": round(sales * (0.97 + 0.06 * unit(code, SURPRISE, number))) if done else None,
        "revenueEstimated": sales,
        "lastUpdated": min(today, reported + timedelta(days=1)).isoformat(),
    }


def _day(listing: Listing, number: int) -> date:
    year, quarter = FIRST_YEAR + number // 4, number % 4
    return date(year, 1 + 3 * quarter, 15) + timedelta(days=int(25 * unit(listing.code, DAY, number)))
