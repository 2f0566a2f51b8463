"""`/news/stock`: eight fields per article, newest first.

An article is there from the second it is published.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from livewell.apps.market.simulator.data.noise import unit
from livewell.apps.market.simulator.data.prices import Listing
from livewell.apps.market.simulator.data.trading_day import wall_text

__all__ = ["news_rows"]

SLOT_SECONDS = 3_600  # at most one article per symbol and hour, in a quarter of the hours
SHARE = 0.25
LIMIT_DEFAULT = 20
LIMIT_MAX = 250
PAGES_MAX = 20
HAPPENS, SECOND, WORDS = 90, 91, 92
HEADLINES = (
    "{name} beats expectations",
    "Why {symbol} shares moved today",
    "{name} names a new finance chief",
    "Analysts raise their targets for {symbol}",
    "{name} opens a plant that does not exist",
    "Is {symbol} still cheap?",
)
PUBLISHERS = (
    ("Simulated Wire", "wire.example"),
    ("The Example Post", "post.example"),
    ("Daily Sample", "sample.example"),
)


def news_rows(listings: Sequence[Listing], at: int, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Answer for these symbols together.

    `page` counts from 0; `from` and `to` are days, both included.
    """
    limit = min(_number(query, "limit", LIMIT_DEFAULT), LIMIT_MAX)
    first = min(_number(query, "page", 0), PAGES_MAX) * limit
    since, until = query.get("from", ""), query.get("to", "")
    found: list[tuple[int, dict[str, Any]]] = []
    for listing in listings:
        for seen, (published, row) in enumerate(_articles(listing, at)):
            if seen >= first + limit or (since and row["publishedDate"][:10] < since):
                break
            if not until or row["publishedDate"][:10] <= until:
                found.append((published, row))
    found.sort(key=lambda one: (-one[0], one[1]["symbol"]))
    return [row for _, row in found[first : first + limit]]


def _articles(listing: Listing, at: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Go back through the hours, a year at most."""
    newest = at // SLOT_SECONDS
    for slot in range(newest, newest - 8_760, -1):
        if unit(listing.code, HAPPENS, slot) < SHARE:
            published = slot * SLOT_SECONDS + int(SLOT_SECONDS * unit(listing.code, SECOND, slot))
            if published <= at:
                yield published, _row(listing, slot, published)


def _row(listing: Listing, slot: int, published: int) -> dict[str, Any]:
    word = unit(listing.code, WORDS, slot)
    title = HEADLINES[int(word * len(HEADLINES))].format(name=listing.name, symbol=listing.symbol)
    publisher, site = PUBLISHERS[slot % len(PUBLISHERS)]
    image = None if slot % 9 == 0 else f"https://images.{site}/{listing.symbol}-{slot}.jpg"
    return {
        "symbol": listing.symbol,
        "publishedDate": wall_text(published),
        "publisher": publisher,
        "title": title,
        "image": image,
        "site": site,
        "text": f"{title}. This article was made by a simulator; nothing in it happened.",
        "url": f"https://{site}/{listing.symbol.lower()}/{slot}",
    }


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 6 else default
