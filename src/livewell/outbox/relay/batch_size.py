"""How many events a relay claims at once: as many as its sink takes in a quarter of a second.

A batch is what a quick tenant waits for behind a busy one, and what goes twice after a crash, so it
is no larger than the pace of the sink asks for.
"""

from __future__ import annotations

_FIRST = 100
_GROWTH = 2.0
_WEIGHT = 0.3  # of the newest batch


class BatchSize:
    """Follows what batches took."""

    def __init__(self, batch_seconds: float) -> None:
        self._target_seconds = batch_seconds
        self._event_seconds: float | None = None
        self.batch_seconds: float | None = None  # what a batch took lately
        self.now = _FIRST

    def took(self, events: int, seconds: float) -> None:
        """A batch of so many events was settled after so long."""
        each = seconds / events
        known = self._event_seconds
        self._event_seconds = each if known is None else (1 - _WEIGHT) * known + _WEIGHT * each
        before = self.batch_seconds
        self.batch_seconds = seconds if before is None else max((1 - _WEIGHT) * before + _WEIGHT * seconds, seconds / 4)
        fits = self._target_seconds / max(self._event_seconds, 1e-7)
        self.now = max(1, round(min(fits, self.now * _GROWTH, 5000)))
