"""Which path answers with what: the nine paths, eight kinds of data, and how coarse the time of
each is.

The *source time* of an answer is the instant at which the market was looked at, rounded down to the
data's step (the tick for prices, an hour for what changes daily). Everything in a true answer
follows from seed, symbols asked, query and source time; that is what lets the judge make it again
from the log.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from livewell.apps.market.simulator.data.earnings import earnings_rows
from livewell.apps.market.simulator.data.history import history_rows
from livewell.apps.market.simulator.data.news import news_rows
from livewell.apps.market.simulator.data.prices import Listing, Market
from livewell.apps.market.simulator.data.profile import profile_row
from livewell.apps.market.simulator.data.quote import quote_row
from livewell.apps.market.simulator.data.statement import balance_sheet_rows, cash_flow_rows, income_rows

__all__ = ["DATASETS", "PATHS", "Dataset", "asked", "rows_of"]

Rows = list[dict[str, Any]]
SYMBOLS_MAX = 500  # of one batch


@dataclass(frozen=True, slots=True)
class Dataset:
    """One kind of data.

    step_seconds 0: the market's tick. time_field "": the source gives no time.
    """

    name: str
    paths: tuple[str, ...]
    rows: Callable[[Market, Sequence[Listing], int, Mapping[str, str]], Rows]
    step_seconds: int
    time_field: str
    number_field: str  # one that drift renames and turns into text
    stale_seconds: int  # how much older a stale answer is, at least


def _each(one: Callable[[Market, Listing, int], dict[str, Any]]) -> Callable[..., Rows]:
    return lambda market, listings, at, _: [one(market, listing, at) for listing in listings]


def _many(one: Callable[[Listing, int, Mapping[str, str]], Rows]) -> Callable[..., Rows]:
    return lambda _, listings, at, query: [row for listing in listings for row in one(listing, at, query)]


def _history(market: Market, listings: Sequence[Listing], at: int, query: Mapping[str, str]) -> Rows:
    return [row for listing in listings for row in history_rows(market, listing, at, query)]


def _news(_: Market, listings: Sequence[Listing], at: int, query: Mapping[str, str]) -> Rows:
    return news_rows(listings, at, query)


DAY = 86_400
HOUR = 3_600
DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("quote", ("/stable/quote", "/stable/batch-quote"), _each(quote_row), 0, "timestamp", "price", 600),
        Dataset("profile", ("/stable/profile",), _each(profile_row), 0, "", "price", 600),
        Dataset(
            "income_statement",
            ("/stable/income-statement",),
            _many(income_rows),
            HOUR,
            "acceptedDate",
            "revenue",
            400 * DAY,
        ),
        Dataset(
            "balance_sheet_statement",
            ("/stable/balance-sheet-statement",),
            _many(balance_sheet_rows),
            HOUR,
            "acceptedDate",
            "totalAssets",
            400 * DAY,
        ),
        Dataset(
            "cash_flow_statement",
            ("/stable/cash-flow-statement",),
            _many(cash_flow_rows),
            HOUR,
            "acceptedDate",
            "netIncome",
            400 * DAY,
        ),
        Dataset("earnings", ("/stable/earnings",), _many(earnings_rows), HOUR, "lastUpdated", "epsEstimated", 4 * DAY),
        Dataset("history", ("/stable/historical-price-eod/full",), _history, HOUR, "date", "close", 7 * DAY),
        Dataset("news", ("/stable/news/stock",), _news, 300, "publishedDate", "", 2 * DAY),
    )
}
PATHS = {path: dataset for dataset in DATASETS.values() for path in dataset.paths}
MANY = ("/stable/batch-quote", "/stable/news/stock")  # take symbols=A,B; the others take symbol=A


def asked(path: str, query: Mapping[str, str]) -> tuple[str, ...] | None:
    """Give the symbols that a query asks for; None when the parameter is missing. A comma on a
    single path is part of the symbol.
    """
    if path in MANY:
        given = query.get("symbols")
        return None if not given else tuple(dict.fromkeys(given.split(",")))[:SYMBOLS_MAX]
    given = query.get("symbol")
    return (given,) if given else None


def rows_of(market: Market, path: str, symbols: Sequence[str], at: int, query: Mapping[str, str]) -> Rows:
    """Make the true rows; unknown symbols have none."""
    known = [listing for symbol in symbols if (listing := market.listing(symbol)) is not None]
    return PATHS[path].rows(market, known, at, query)
