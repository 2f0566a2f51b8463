"""How many of something there were in the last hour, in this process.

add ──▶ the count of this minute ──60 minutes later──▶ the same place, empty
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

MINUTES: Final = 60


class LastHour:
    """Sixty counts, one for each minute. Counting costs as much as reading the clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._minute = int(clock() // 60)
        self._counts = [0] * MINUTES

    def add(self, n: int) -> None:
        """Count n more."""
        self._turn()
        self._counts[self._minute % MINUTES] += n

    def total(self) -> int:
        """Of the last hour, this minute included."""
        self._turn()
        return sum(self._counts)

    @property
    def seconds(self) -> float:
        """How much of the last hour this process has counted."""
        return min(self._clock() - self._began, MINUTES * 60.0)

    def _turn(self) -> None:
        """Empty the places of the minutes that have begun since."""
        minute = int(self._clock() // 60)
        for passed in range(max(self._minute + 1, minute - MINUTES + 1), minute + 1):
            self._counts[passed % MINUTES] = 0
        self._minute = max(self._minute, minute)
