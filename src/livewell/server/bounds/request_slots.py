"""Places of a bounded thing that requests hold for a moment.

There are so many in all, and a share for one client (livewell.shares).

take ──the client has its share──▶ refused: 429, the bound is the client's own
 ├────all are taken──▶ refused: 503, the server is busy
 └────▶ held ──with block over──▶ given back
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from livewell.server.answers.problems import busy, too_many
from livewell.shares import share


class RequestSlots:
    """The places of one server for one thing; `what` names the thing, in the plural."""

    def __init__(self, what: str, places: int, client_max: int) -> None:
        self._what = what
        self._places = places
        self._client_max = min(places, client_max)
        self._taken: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def take(self, client: str, n: int = 1) -> Iterator[None]:
        """Hold n of them within the block, or raise the problem that says why not."""
        if self._total + n > self._places:
            raise busy(f"The server has as many {self._what} as it may have at once.")
        if self._taken[client] + n > max(n, share(self._client_max, self._total, self._places)):
            raise too_many(f"You have {self._taken[client]} {self._what} already.", seconds=1.0, word="share")
        self._taken[client] += n
        self._total += n
        try:
            yield
        finally:
            self._total -= n
            self._taken[client] -= n
            if self._taken[client] <= 0:
                del self._taken[client]
