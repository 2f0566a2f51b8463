"""A line for each client: a few of its requests are worked on at once, the others wait behind them.

    asks ──less than a few of this client's are at work──▶ at work ──answered──▶ the next of the line

Connections to the database are few. Without lines, one client whose requests wait (for a lock of
its own, say) holds all of them, and everybody waits. With lines, only that client waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ClientLines:
    """The lines of one server.

    A request takes a place (request_slots.py) before it stands in a line, so lines are bounded.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._places: dict[str, asyncio.Semaphore] = {}
        self._standing: dict[str, int] = {}

    @asynccontextmanager
    async def stand(self, client: str) -> AsyncIterator[None]:
        """Wait for the turn of one request of this client."""
        places = self._places.setdefault(client, asyncio.Semaphore(self._at_once))
        self._standing[client] = self._standing.get(client, 0) + 1
        try:
            async with places:
                yield
        finally:
            self._standing[client] -= 1
            if not self._standing[client]:
                del self._standing[client], self._places[client]
