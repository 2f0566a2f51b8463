"""A line of the comparison: who runs, how each is measured, and what is demanded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bench.measure import Figures
from bench.peers.found import Peers
from bench.server import Server
from bench.sizes import Sizes
from bench.system import LIVEWELL, System

BEST = "the best peer"


class Says(Protocol):
    """What every lab can do."""

    @property
    def say(self) -> Callable[[str], None]:
        """Tell how far it is."""


L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement of the queue needs."""

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
    """Somebody who runs in every pair, or only in the first one.

    A figure to look at, not one to be judged by.
    """

    name: str
    measure: Callable[[], Figures]
    every_pair: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """A demand: our figure is at least (or at most) the bound.

    Instead of our figure it may be its ratio to that of another contender. Without a bound the
    figure is only reported. never: no pair may miss it, not even one.
    """

    name: str
    figure: str
    bound: float | None
    against: str | None = None
    among: Sequence[str] = ()  # whom BEST is taken from
    at_most: bool = False
    goal: float | None = None
    never: bool = False


@dataclass(frozen=True, slots=True)
class Line(Generic[L]):
    """One row or a few of the table."""

    name: str
    title: str
    checks: Sequence[Check]
    contenders: Callable[[L], Sequence[Contender]]
    missing: Callable[[], str | None] = lambda: None  # why it cannot be measured in this version
