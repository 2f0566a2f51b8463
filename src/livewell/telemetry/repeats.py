"""Say the same thing a few times, then only how often.

A storm of one failure must not drown the log.

    new cause ──▶ the first few of a window pass ──▶ the rest is counted ──window over──▶ the count is told, a new window

Nothing is lost in silence: lines that did not pass are counted in the next `overdue()`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_SHOWN_MAX = 5
_WINDOW_SECONDS = 60.0
_CAUSES_MAX = 500
_OTHERS = "other causes"


@dataclass(slots=True)
class _Window:
    began: float
    shown: int = 0
    held_back: int = 0


class Repeats:
    """Decides what is still worth a line of its own."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def passes(self, cause: str) -> bool:
        """True for the first few of a cause in a minute; the others are counted."""
        now = self._clock()
        window = self._windows.get(cause)
        if window is None:
            if len(self._windows) >= _CAUSES_MAX:
                cause = _OTHERS
            window = self._windows.setdefault(cause, _Window(now))
        if window.shown < _SHOWN_MAX:
            window.shown += 1
            return True
        window.held_back += 1
        return False

    def hold_back(self, cause: str) -> None:
        """Count one that is not worth a line, whatever its number."""
        now = self._clock()
        known = cause in self._windows or len(self._windows) < _CAUSES_MAX
        self._windows.setdefault(cause if known else _OTHERS, _Window(now, _SHOWN_MAX)).held_back += 1

    def overdue(self, *, everything: bool = False) -> Iterator[tuple[str, int]]:
        """(cause, how many were held back) of every window that is over, or of all of them.

        Each is told once.
        """
        now = self._clock()
        for cause, window in list(self._windows.items()):
            if everything or now - window.began >= _WINDOW_SECONDS:
                del self._windows[cause]
                if window.held_back:
                    yield cause, window.held_back
