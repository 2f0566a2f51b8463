"""How fast this worker works: how many jobs it will have run within a moment from now.

There are two measures, and the lower one counts. Jobs ended per second is never too low, but a
burst fools it: twenty jobs of a minute each that end together look like thousands a second. Slots
divided by the mean length of a job is not fooled by a burst, but assumes that handlers which keep
the one processor busy run side by side.
"""

from __future__ import annotations

import time

_WINDOW_SECONDS = 0.003
_MEMORY = 0.7  # of the old value, when it sinks


class Pace:
    """Fed with the end of every job."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._ended = 0
        self._seconds = 0.0
        self._since = time.monotonic()
        self._rate = 0.0

    def ended(self, started: float) -> None:
        """A job ended that was started then; one that was never started says nothing."""
        if started:
            self._ended += 1
            self._seconds += time.monotonic() - started

    def measure(self) -> None:
        """Look at the time since the last look, unless that was too short."""
        now = time.monotonic()
        passed = now - self._since
        if passed < _WINDOW_SECONDS:
            return
        rate = self._ended / passed
        if self._seconds > 0:
            rate = min(rate, self._slots * self._ended / self._seconds)
        self._rate = max(rate, _MEMORY * self._rate + (1 - _MEMORY) * rate)
        self._ended, self._seconds, self._since = 0, 0.0, now

    def ahead(self, seconds: float) -> int:
        """How many jobs will be run within so many seconds."""
        return int(self._rate * seconds)
