"""Prices that walk: a price is a pure function of seed, symbol and instant.

A walk that one can enter anywhere is a sum of octaves: noise over 60 s, over 4 minutes, 16 minutes,
… up to two years, each with twice the height of the one before (a random walk's spread grows with
the root of time), plus a little noise of the very second, so that two ticks differ. About 2 % a
day.
"""

from dataclasses import dataclass
from math import exp

from livewell.apps.market.simulator.data.noise import code_of, unit
from livewell.apps.market.simulator.data.universe import Universe

__all__ = ["Listing", "Market"]

OCTAVES = 11
FINEST_SECONDS = 60
FINEST_HEIGHT = 0.000_55
TICK_HEIGHT = 0.002
TICK = 31  # purposes of a draw: 0–10 are the octaves
BASE, SHARES = 32, 33
WELL_KNOWN = 50
TREND = 7  # the first octave of the trend
TREND_SECONDS = FINEST_SECONDS * 4**TREND
QUICK_HEIGHT = (FINEST_HEIGHT * (2**TREND - 1) + TICK_HEIGHT) / 2  # of all that is not trend, either way


@dataclass(frozen=True, slots=True)
class Listing:
    """What is constant about a symbol."""

    symbol: str
    name: str
    place: int
    code: int
    base_price: float
    shares: int


class Market:
    """Every price that there ever was, and will be."""

    def __init__(self, seed: int, symbols: int) -> None:
        self.seed = seed
        self.universe = Universe(symbols)
        self._listings: dict[str, Listing] = {}  # at most one per symbol of the universe, as is the next
        self._corners: dict[str, list[tuple[int, float, float]]] = {}

    def listing(self, symbol: str) -> Listing | None:
        """Look a symbol up; None when it is unknown."""
        found = self._listings.get(symbol)
        if found is None and symbol in self.universe:
            code, place = code_of(self.seed, symbol), self.universe.places[symbol]
            draw = unit(code, BASE)
            found = self._listings[symbol] = Listing(
                symbol=symbol,
                name=self.universe.name(symbol),
                place=place,
                code=code,
                # 60 to 600 for the well-known ones, which come first; 5 to 500 for the rest
                base_price=60 * exp(draw * 2.3) if place < WELL_KNOWN else 5 * exp(draw * 4.6),
                shares=int(1e7 * exp(unit(code, SHARES) * 6)),  # 10 million to 4 billion
            )
        return found

    def price(self, listing: Listing, at: int) -> float:
        """Give the price at an instant, to the cent."""
        corners = self._corners.get(listing.symbol)
        if corners is None:
            corners = self._corners[listing.symbol] = [(-1, 0.0, 0.0)] * OCTAVES
        code = listing.code
        height, period = FINEST_HEIGHT, FINEST_SECONDS
        total = (unit(code, TICK, at) - 0.5) * TICK_HEIGHT
        for octave in range(OCTAVES):
            cell, into = divmod(at, period)
            known, left, right = corners[octave]
            if known != cell:
                left, right = unit(code, octave, cell) - 0.5, unit(code, octave, cell + 1) - 0.5
                corners[octave] = (cell, left, right)
            total += height * (left + (right - left) * into / period)
            height *= 2
            period *= 4
        return round(listing.base_price * exp(total), 2)

    def bounds(self, listing: Listing, since: int, until: int) -> tuple[float, float]:
        """Give a lowest and a highest price that no instant between these goes beyond.

        The trend turns only where its finest octave does; what is quicker has a known height. Each
        corner of an octave is drawn once: a year has 45 turns of four octaves, and a symbol's first
        quote waits for them.
        """
        turns = range(since - since % TREND_SECONDS, until + TREND_SECONDS, TREND_SECONDS)
        totals = [0.0] * len(turns)
        for octave in range(TREND, OCTAVES):
            height, period = FINEST_HEIGHT * 2**octave, FINEST_SECONDS * 4**octave
            first = turns[0] // period
            corners = [unit(listing.code, octave, cell) - 0.5 for cell in range(first, turns[-1] // period + 2)]
            for number, at in enumerate(turns):
                cell, into = divmod(at, period)
                left = corners[cell - first]
                totals[number] += height * (left + (corners[cell - first + 1] - left) * into / period)
        lowest, highest = min(totals) - QUICK_HEIGHT, max(totals) + QUICK_HEIGHT
        return listing.base_price * exp(lowest), listing.base_price * exp(highest)

    def trend(self, listing: Listing, at: int) -> float:
        """Give the price without its quick movements, for averages over months: half the work."""
        total = 0.0
        for octave in range(TREND, OCTAVES):
            period = FINEST_SECONDS * 4**octave
            cell, into = divmod(at, period)
            left, right = unit(listing.code, octave, cell) - 0.5, unit(listing.code, octave, cell + 1) - 0.5
            total += FINEST_HEIGHT * 2**octave * (left + (right - left) * into / period)
        return listing.base_price * exp(total)
