"""Decide which call gets which fault.

Faults are dealt at seeded, irregular places, so that a share is kept and not only expected.

The j-th firing of a fault with share p falls due after (j + u) / p calls, u drawn from [0, 1) by
the seed. Of faults that fall due together, one fires and the others wait for the next call. A fault
that cannot be done to this call's data (no time in it, no number) waits too.
"""

import heapq
from collections import Counter
from collections.abc import Collection

from livewell.apps.market.simulator.data.noise import code_of, unit
from livewell.apps.market.simulator.policy.faults import Fault, members

__all__ = ["FaultDeck"]

LOOKED_AT_MAX = 8


class FaultDeck:
    """The faults of one set of shares, in the order in which they fall due."""

    def __init__(self, shares: dict[str, float], seed: int, never: Collection[str] = ()) -> None:
        self._shares = dict(shares)
        self._codes = {name: code_of(seed, name) for name in shares}
        self._members = {name: [fault for fault in members(name) if fault.name not in never] for name in shares}
        self._fired: Counter[str] = Counter()
        self._calls = 0
        self._due = [(self._place(name, 0), name) for name in shares if self._members[name]]
        heapq.heapify(self._due)

    def deal(self, has: tuple[str, ...]) -> Fault | None:
        """Give this call its fault, or none. has: what its data has of time and number."""
        self._calls += 1
        passed: list[tuple[float, str]] = []
        fault = None
        while self._due and self._due[0][0] <= self._calls and len(passed) < LOOKED_AT_MAX and fault is None:
            place, name = heapq.heappop(self._due)
            fault = self._member(name, has)
            if fault is None:
                passed.append((place, name))
            else:
                self._fired[name] += 1
                heapq.heappush(self._due, (self._place(name, self._fired[name]), name))
        for entry in passed:
            heapq.heappush(self._due, entry)
        return fault

    def _member(self, name: str, has: tuple[str, ...]) -> Fault | None:
        """Whose turn it is; one that does not suit gives its turn to the next."""
        choices = self._members[name]
        start = self._fired[name]
        turns = (choices[(start + step) % len(choices)] for step in range(len(choices)))
        return next((fault for fault in turns if not fault.needs or fault.needs in has), None)

    def _place(self, name: str, number: int) -> float:
        return (number + unit(self._codes[name], 1, number)) / self._shares[name]
