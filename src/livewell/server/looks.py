"""What people who look at the dashboard use of the database: little, and apart from everybody else.

    closed ──first look──▶ open

The dashboard has a few connections of its own and a second for each statement, so people who look
take nothing from those who are served. The server holds it to that second, also behind a
transaction pooler; the call's own deadline would only leave the statement alone. Until somebody
looks there are no connections.

Of these connections a client has two at a time: whoever asks for ten pages that the database is
slow to answer waits for the own ones, and everybody else's pages come as ever. What open tabs
follow is painted two pages at a time, one for each client: so two connections are left for whoever
opens a page, and one who follows slow pages leaves the other place to everybody else.
"""

from __future__ import annotations

import asyncio

from livewell.db import Database
from livewell.server.bounds.client_shares import ClientShares
from livewell.server.findings import Findings
from livewell.server.state_sampler import StateSampler
from livewell.settings import Settings

_CONNECTIONS = 4
_OF_A_CLIENT = 2
_PAINTINGS = 2
_PAINTINGS_OF_A_CLIENT = 1
_BOUNDS = {
    "pool_size_max": _CONNECTIONS,
    "pool_wait_seconds": 2.0,  # an outage is said by then, not after a page full of waits
    "statement_timeout_seconds": 1.0,
    "call_timeout_seconds": 2.0,
}


class Looks:
    """One for each server."""

    def __init__(self, address: str, settings: Settings) -> None:
        self.database = Database(address, settings.model_copy(update=_BOUNDS), bounded=True)
        self.sampler = StateSampler(self.database)
        self.findings = Findings(address, settings)
        self._lock = asyncio.Lock()
        self._opened = False
        self.shares = ClientShares(_OF_A_CLIENT)  # of pages that are opened
        self.paintings = ClientShares(_PAINTINGS_OF_A_CLIENT, _PAINTINGS)  # of pages that are followed

    async def open(self) -> None:
        """Connect, if nobody has looked yet."""
        async with self._lock:
            if not self._opened:
                await self.database.open()
                self._opened = True

    async def close(self) -> None:
        """Disconnect."""
        await self.findings.close()
        await self.database.close()
