"""Is the database there?

It is asked five times a second on a connection of its own. So code that shows values can say at
once that nobody can judge them any more (R22).

    there ──an error, or no answer for 1.5 s──▶ away ──an answer──▶ there

No request pays for it: `ready` and `away` are read from memory. A process that was itself held up
does not judge the database: an answer that it did not read in time may have been there all along.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from livewell.db.database import Database
from livewell.db.link import Link
from livewell.errors import LivewellError

log = structlog.get_logger("livewell.presence")

EVERY_SECONDS = 0.2
READY_SECONDS = (
    0.8  # without an answer for so long it is not ready: with the pause between two questions, said within a second
)
AWAY_SECONDS = 1.5
_CONNECT_SECONDS = 2.0
_LOOK_SECONDS = 0.1
_HELD_UP_SECONDS = 0.3


class Presence:
    """Asks the database all the time whether it is there.

    `async with Presence(database) as presence:`; the database must be open.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._link: Link | None = None
        self._asking: asyncio.Task[None] | None = None
        self._heard_at = time.monotonic()
        self._failed = False
        self._listeners: list[Callable[[], None]] = []
        self.away = False

    @property
    def ready(self) -> bool:
        """It answered within the last second."""
        return not self._failed and self.silent_seconds < READY_SECONDS + EVERY_SECONDS

    @property
    def silent_seconds(self) -> float:
        """Since its last answer."""
        return time.monotonic() - self._heard_at

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call this whenever `away` changes."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Ask from now on."""
        self._link = self._database.link(seconds=AWAY_SECONDS)
        self._heard_at = time.monotonic()
        self._asking = asyncio.create_task(self._run(), name="presence")

    async def close(self) -> None:
        """Ask no more."""
        # A cancelled task holds its traceback, and that the half-made connection. Nothing may refer
        # to the task afterwards, or a login that is cut off in its middle stays open until the
        # garbage collector comes; a backend that waits for a password holds up every DROP DATABASE
        # of its server.
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()
            await asyncio.wait([asking], timeout=2)
        if self._link is not None:
            await self._link.close()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self) -> None:
        while True:
            asking = asyncio.create_task(self._ask(), name="presence-ask")
            try:
                await self._watch(asking)
            finally:
                asking.cancel()
                await asyncio.wait([asking])
            self._failed = not asking.result()
            if not self._failed:
                self._heard_at = time.monotonic()
            self._judge()
            await asyncio.sleep(EVERY_SECONDS)

    async def _watch(self, asking: asyncio.Task[bool]) -> None:
        """Until it is answered, or has failed."""
        while True:
            began = time.monotonic()
            done, _ = await asyncio.wait([asking], timeout=_LOOK_SECONDS)
            if done:
                return
            if time.monotonic() - began < _LOOK_SECONDS + _HELD_UP_SECONDS:
                self._judge()

    async def _ask(self) -> bool:
        """Twice: a connection that was closed while nothing was wrong is opened again."""
        assert self._link is not None  # noqa: S101 - start() made it
        for _ in range(2):
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await self._link.ask("SELECT 1", ())
                return True
            except (LivewellError, TimeoutError):
                continue
        return False

    def _judge(self) -> None:
        away = self._failed or self.silent_seconds > AWAY_SECONDS
        if away != self.away:
            self.away = away
            if away:
                log.warning("the database is away", silent_seconds=round(self.silent_seconds, 1))
            else:
                log.info("the database is back")
            for listener in self._listeners:
                listener()
