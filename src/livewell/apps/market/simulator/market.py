"""Prices that walk: the price of a symbol at an instant is a pure function of seed, symbol and instant.

A walk that one can enter anywhere is a sum of octaves: noise over 60 s, over 4 minutes, 16 minutes, … up to two years,
each with twice the height of the one before (a random walk's spread grows with the root of time), plus a little noise
of the very second, so that two ticks differ. About 2 % a day.
"""

from dataclasses import dataclass
from math import exp

from livewell.apps.market.simulator.noise import code_of, unit
from livewell.apps.market.simulator.universe import Universe

__all__ = ["Listing", "Market"]

OCTAVES = 11
FINEST_SECONDS = 60
FINEST_HEIGHT = 0.000_55
TICK_HEIGHT = 0.002
TICK = 31  # purposes of a draw: 0–10 are the octaves
BASE, SHARES = 32, 33
WELL_KNOWN = 50


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

    def trend(self, listing: Listing, at: int) -> float:
        """Give the price without its quick movements, for averages and extremes over months: half the work."""
        code = listing.code
        total = 0.0
        for octave in range(7, OCTAVES):
            cell, into = divmod(at, FINEST_SECONDS * 4**octave)
            left, right = unit(code, octave, cell) - 0.5, unit(code, octave, cell + 1) - 0.5
            total += FINEST_HEIGHT * 2**octave * (left + (right - left) * into / (FINEST_SECONDS * 4**octave))
        return listing.base_price * exp(total)
