"""Tell waiting workers that there is something to do, without a NOTIFY in anybody's transaction.

A NOTIFY inside a writer's transaction takes a lock over the whole cluster until after its commit:
10,852 became 3,406 transactions a second at 32 clients. So a nudge is sent after the commit, on a
connection of its own: the first of a name at once (leading edge), then at most one per name and
interval.

Names do not wait for each other. Otherwise a value that is stored a few milliseconds after its job
was queued would be seen an interval later. The first nudge of a name may also ride along with the
statement that it is about, on the same connection: the server sends it right after the commit, a
round trip sooner.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from livewell.db import Database
from livewell.db.link import Statement, as_array
from livewell.db.listen import CHANNEL
from livewell.errors import DatabaseError

# Nothing is lost when a nudge is: its commit need not wait for the disk.
_NOTIFY = "SELECT pg_notify($1, name) FROM unnest($2::text[]) AS name, set_config('synchronous_commit', 'off', true)"
_CLOSE_SECONDS = 1.0


class Nudger:
    """Sends nudges for one process.

    Listeners inside the process are called directly, without the database.
    """

    def __init__(self, database: Database) -> None:
        self._link = database.link()
        self._interval_seconds = database.settings.nudge_ms / 1000
        self._waiting: set[str] = set()
        self._resting: dict[str, float] = {}  # name → when it may be sent again, monotonic
        self._more = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._idle = True
        self._local: list[Callable[[str], None]] = []
        self.sent = 0
        self.failed = 0

    def attach(self, listener: Callable[[str], None]) -> None:
        """Call this for every nudge of our own process."""
        self._local.append(listener)

    def detach(self, listener: Callable[[str], None]) -> None:
        """Stop calling it."""
        self._local.remove(listener)

    def ride(self, name: str) -> Statement | None:
        """The statement that nudges, for the caller to send behind a commit.

        None while the name rests: then nudge() as always.
        """
        now = time.monotonic()
        if name in self._waiting or self._resting.get(name, now) > now:
            return None
        self._resting[name] = now + self._interval_seconds
        return _NOTIFY, (CHANNEL, as_array([name]))

    def tell(self, name: str) -> None:
        """Call those who listen in our own process."""
        for listener in self._local:
            listener(name)

    def nudge(self, name: str) -> None:
        """Something changed under this name: that of a queue, or one in a package's nudges.py.

        Returns at once; a lost nudge only costs a poll interval.
        """
        self.tell(name)
        self._waiting.add(name)
        if name not in self._resting:
            self._more.set()
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting or self._resting:
            now = time.monotonic()
            self._resting = {name: until for name, until in self._resting.items() if until > now}
            names = sorted(self._waiting - self._resting.keys())
            if not names:
                await self._rest()
                continue
            self._waiting.difference_update(names)
            self._idle = False
            try:
                await self._link.ask(_NOTIFY, (CHANNEL, as_array(names)))
                self.sent += len(names)
            except DatabaseError:
                self.failed += len(names)  # polling is the guarantee
            self._idle = True
            self._resting |= dict.fromkeys(names, time.monotonic() + self._interval_seconds)

    async def _rest(self) -> None:
        """Until some name may be sent again, or another one comes."""
        self._more.clear()
        until = min(self._resting.values(), default=0.0)
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await self._more.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        """Send what waits, within a second.

        A script that enqueues and ends should not cost its jobs a poll interval.
        """
        self._interval_seconds = 0.0
        self._resting.clear()
        self._more.set()
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=_CLOSE_SECONDS if self._waiting or not self._idle else 0)
            self._sending.cancel()
        await self._link.close()
