"""How many requests wait for a refresh at once.

Half of all that the server works on, and ten of one client; less when many wait (livewell.shares).
A request beyond that gets what is stored, without waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from livewell.shares import Client, share

CLIENT_WAITS_MAX = 10


class WaitingReads:
    """The waiting reads of one server."""

    def __init__(self, waits_max: int) -> None:
        self._waits_max = waits_max
        self._waiting: Counter[Client] = Counter()

    @contextmanager
    def take(self, client: Client, seconds: float) -> Iterator[float]:
        """The seconds that may be waited: those asked for, or none."""
        if seconds <= 0 or self._waiting[client] >= self._most(client):
            yield 0.0
            return
        self._waiting[client] += 1
        try:
            yield seconds
        finally:
            self._waiting[client] -= 1
            if self._waiting[client] <= 0:
                del self._waiting[client]

    def _most(self, client: Client) -> int:
        return share(CLIENT_WAITS_MAX, self._waiting.total(), self._waits_max, stranger=client.stranger)
