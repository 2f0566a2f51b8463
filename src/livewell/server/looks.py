"""What people who look at the dashboard use of the database: little, and apart from everybody else.

    closed ──first look──▶ open

The dashboard has a few connections of its own and a second for each statement, so people who look
take nothing from those who are served. The server holds it to that second, also behind a
transaction pooler; the call's own deadline would only leave the statement alone. Until somebody
looks there are no connections.
"""

from __future__ import annotations

import asyncio

from livewell.db import Database
from livewell.server.findings import Findings
from livewell.server.state_sampler import StateSampler
from livewell.settings import Settings

_BOUNDS = {
    "pool_size_max": 4,
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
