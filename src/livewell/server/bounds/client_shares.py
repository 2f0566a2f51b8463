"""Places for what clients do at a time: so many for each of them, and so many for all.

    waits for an own place ──▶ waits for one of all ──▶ within

Own places come first, so a client never has more than those in the line for the places of all, and
whoever asks for a hundred things stands there no oftener than anybody else. Both lines are first
come, first served.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from livewell.shares import Client


class ClientShares:
    """of_client: places of each client; of_all: of all together, None if only each client is bounded."""

    def __init__(self, of_client: int, of_all: int | None = None) -> None:
        self._of_client = of_client
        self._all = nullcontext() if of_all is None else asyncio.Semaphore(of_all)
        self._asking: Counter[Client] = Counter()
        self._own: dict[Client, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def take(self, client: Client) -> AsyncIterator[None]:
        """One of the places of a client, within the block."""
        own = self._own.setdefault(client, asyncio.Semaphore(self._of_client))
        self._asking[client] += 1
        try:
            async with own, self._all:
                yield
        finally:
            self._asking[client] -= 1
            if not self._asking[client]:
                del self._asking[client], self._own[client]

    def asking(self, client: Client) -> int:
        """How many places it has, or waits for."""
        return self._asking[client]

    @property
    def is_idle(self) -> bool:
        """True if nothing is kept of anybody."""
        return not self._asking and not self._own
