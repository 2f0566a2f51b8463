"""How many events a sink with a rate may be sent now.

    full ──events sent──▶ less ──time passes──▶ full (a tenth of a window, one event at least)

The rate of a sink is for all its relays together. A shard belongs to one relay, so each may send
its shards' part of the rate, and nobody has to ask anybody: a relay with 16 of 64 shards sends a
quarter. A relay that begins has nothing saved up: restarts add nothing to the rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from livewell.limits.notation import Rate

SHARDS = 64
_BURST = 0.1  # of a window


class Pace:
    """Of one relay. Without a rate there is always room."""

    def __init__(self, rate: Rate | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._saved = 0.0
        self._at = clock()

    def room(self, shards: int, wanted: int) -> int:
        """How many of these may go now, with so many shards."""
        if self._rate is None:
            return wanted
        now = self._clock()
        each_second = self._rate.calls / self._rate.seconds * shards / SHARDS
        most = max(1.0, self._rate.calls * _BURST * shards / SHARDS)
        self._saved = min(most, self._saved + (now - self._at) * each_second)
        self._at = now
        return min(wanted, int(self._saved))

    def sent(self, events: int) -> None:
        """So many were claimed to be sent."""
        if self._rate is not None:
            self._saved -= events

    def until_room_seconds(self, shards: int) -> float:
        """How long until one more may go; 0 without a rate."""
        if self._rate is None or shards == 0 or self._saved >= 1:
            return 0.0
        return (1 - self._saved) * self._rate.seconds * SHARDS / (self._rate.calls * shards)
