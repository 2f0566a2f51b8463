"""A line of the comparison: who runs, how each is measured, and what is demanded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.measure import Figures
from bench.peers.found import Peers
from bench.server import Server
from bench.sizes import Sizes
from bench.system import LIVEWELL, System

BEST = "the best peer"


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement needs."""

    server: Server
    sizes: Sizes
    peers: Peers
    say: Callable[[str], None]

    def system(self, name: str) -> System:
        """Livewell, or a peer that was found."""
        return LIVEWELL if name == LIVEWELL.name else self.peers.systems[name]

    def found(self, *names: str) -> list[str]:
        """Those of these peers that are there."""
        return [name for name in names if name in self.peers.systems]


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody who runs in every pair, or only in the first one: a figure to look at, not one to be judged by."""

    name: str
    measure: Callable[[], Figures]
    every_pair: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """A demand: our figure, or its ratio to that of another contender, is at least (or at most) the bound."""

    name: str
    figure: str
    bound: float
    against: str | None = None
    among: Sequence[str] = ()  # whom BEST is taken from
    at_most: bool = False
    goal: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One row or a few of the table."""

    name: str
    title: str
    checks: Sequence[Check]
    contenders: Callable[[Lab], Sequence[Contender]]
    missing: Callable[[], str | None] = lambda: None  # why it cannot be measured in this version
