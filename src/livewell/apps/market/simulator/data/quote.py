"""`/quote` and `/batch-quote`: one row of 17 fields per symbol.

timestamp is the tick's Unix second.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from livewell.apps.market.simulator.data.noise import unit
from livewell.apps.market.simulator.data.prices import Listing, Market
from livewell.apps.market.simulator.data.trading_day import newest_session, previous_day, session

__all__ = ["SPREAD", "exchange", "quote_row"]

DAY_SECONDS = 86_400
HIGH, LOW, VOLUME = 40, 41, 42
SPREAD = 0.01  # a day's extremes lie at most so far beyond its first and last price
EXCHANGES = ("NASDAQ", "NYSE", "AMEX")


class Day(NamedTuple):
    """What stands still during a day."""

    opened_at: int
    open: float
    previous_close: float
    year_high: float
    year_low: float
    average_50: float
    average_200: float
    volume: int


def exchange(listing: Listing) -> str:
    """Say where it is traded."""
    return EXCHANGES[listing.code % 3]


def quote_row(market: Market, listing: Listing, at: int) -> dict[str, Any]:
    """Make the quote of one symbol. Every 17th symbol is too young for a year's figures; every 23rd
    trades fractions.
    """
    day = _day(market, listing.symbol, newest_session(at)[1])
    price = market.price(listing, at)
    low = round(min(day.open, price) * (1 - SPREAD * unit(listing.code, LOW, day.opened_at)), 2)
    high = round(max(day.open, price) * (1 + SPREAD * unit(listing.code, HIGH, day.opened_at)), 2)
    change = round(price - day.previous_close, 2)
    young = listing.place % 17 == 16
    volume = day.volume * min(at - day.opened_at, 23_400) // 23_400
    return {
        "symbol": listing.symbol,
        "name": listing.name,
        "price": price,
        "changePercentage": round(change / day.previous_close * 100, 5),
        "change": change,
        "volume": volume + 0.25 if listing.place % 23 == 22 else volume,
        "dayLow": low,
        "dayHigh": high,
        "yearHigh": None if young else max(day.year_high, high),
        "yearLow": None if young else min(day.year_low, low),
        "marketCap": round(price * listing.shares),
        "priceAvg50": day.average_50,
        "priceAvg200": None if young else day.average_200,
        "exchange": exchange(listing),
        "open": day.open,
        "previousClose": day.previous_close,
        "timestamp": at,
    }


@lru_cache(maxsize=100_000)
def _day(market: Market, symbol: str, opened_at: int) -> Day:
    listing = market.listing(symbol)
    if listing is None:
        raise KeyError(symbol)
    today = newest_session(opened_at)[0]
    # Whatever a chart shows lies between.
    lowest, highest = market.bounds(listing, opened_at - 366 * DAY_SECONDS, opened_at)
    # A look at each of the past months: enough for averages that are only plausible.
    months = [market.trend(listing, opened_at - month * 30 * DAY_SECONDS) for month in range(7)]
    return Day(
        opened_at=opened_at,
        open=market.price(listing, opened_at),
        previous_close=market.price(listing, session(previous_day(today))[2]),
        year_high=round(highest * (1 + SPREAD), 2),
        year_low=round(lowest * (1 - SPREAD), 2),
        average_50=round(sum(months[:2]) / 2, 5),
        average_200=round(sum(months) / 7, 5),
        volume=int(listing.shares * (0.002 + 0.01 * unit(listing.code, VOLUME, opened_at))),
    )
