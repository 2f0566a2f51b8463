"""Where to go on looking for jobs, while looking from the beginning is slow.

    whole ──the look was slow──▶ marked ──every half second, or ten times what the look took, 5 s at most──▶ whole
      ▲                                                                                                          │
      └───────────────────────────────────────────the look was quick─────────────────────────────────────────────┘

When somebody holds an old snapshot, the index entries of finished jobs cannot be removed, and each
claim walks over all of them first. A mark is the place of the last job claimed, per queue and lane.
A job that becomes ready before a mark (an urgent job, a late commit) is found by the next look from
the beginning: a bounded delay, in a bad time only. docs/adr/0004-scan-mark.md has the figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from livewell.model import Lane

_WHOLE_SECONDS = 0.5
_WHOLE_SECONDS_MAX = 5.0
_WHOLE_COSTS = 10  # at five, whole looks took a fifth of a drain after 45 s of load under an old snapshot (0.44 s each)
_LANES = len(Lane)

Place = tuple[int, int]  # rank, id


class Marks:
    """The marks of one worker."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], Place] = {}
        self.whole_at: float | None = None  # when to look from the beginning again; None: we always do
        self._pause = 0.0  # from the last look from the beginning to the next

    def use(self) -> bool:
        """Whether to start at the marks now."""
        return self.whole_at is not None and time.monotonic() < self.whole_at

    def arrays(self, queues: Sequence[str]) -> tuple[list[int | None], list[int | None]]:
        """The arguments of claim_jobs: rank and id for each queue and lane."""
        places = [self._places.get((queue, lane)) for queue in queues for lane in range(_LANES)]
        return [place and place[0] for place in places], [place and place[1] for place in places]

    def quick(self) -> None:
        """A look from the beginning took no longer than it should."""
        self.whole_at = None
        self._places.clear()

    def slow(self, seconds: float) -> None:
        """A look from the beginning took this long."""
        self._pause = min(max(_WHOLE_SECONDS, _WHOLE_COSTS * seconds), _WHOLE_SECONDS_MAX)
        self.whole_at = time.monotonic() + self._pause

    def not_looked(self) -> None:
        """A look from the beginning did not happen, for its queue is paused.

        What was known before still holds.
        """
        if self.whole_at is not None:
            self.whole_at = time.monotonic() + self._pause

    def forget(self, lanes: Iterable[tuple[str, int]]) -> None:
        """Start again there."""
        for lane in lanes:
            self._places.pop(lane, None)

    def move(self, queue: str, lane: int, place: Place) -> None:
        """A job was claimed there."""
        known = self._places.get((queue, lane))
        if known is None or place > known:
            self._places[queue, lane] = place
