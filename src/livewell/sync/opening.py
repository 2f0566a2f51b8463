"""When app.sync is open, and in which loop.

    closed ──open(), portal(), enter()──▶ open ──close(), the last leave(), atexit──▶ closed
                                           └──fork──▶ closed in the child

There are three cases. The app is open in a running loop of somebody else's (a worker whose blocking
handlers run in threads): that loop is used, and closing is not ours. The app is not open: a portal
thread is started and the app is opened in it. The app was open before a fork: the child starts
anew, and keeps what it inherited without touching it, because its sockets and its epoll are the
parent's too.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from livewell.db import Database, Transaction
from livewell.db.foreign import Foreign
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseUnavailable, LivewellError
from livewell.model import Enqueued
from livewell.outbox.emit import Emit
from livewell.outbox.inbox import Inbox
from livewell.queue.admin import QueueAdmin
from livewell.settings import Settings
from livewell.sync.portal import Portal, refuse_event_loop
from livewell.sync.thread import STOP_SECONDS, PortalThread


class App(Protocol):
    """The app that is driven here. It is Livewell, which this package may not import."""

    @property
    def settings(self) -> Settings:
        """The validated configuration."""

    @property
    def database(self) -> Database:
        """The open database; raises LivewellError when there is none."""

    @property
    def nudger(self) -> Nudger:
        """Wakes waiting workers."""

    @property
    def admin(self) -> QueueAdmin:
        """Look and mend."""

    @property
    def emit(self) -> Emit:
        """Emit events."""

    @property
    def inbox(self) -> Inbox:
        """Handle events once."""

    async def open(self, *, settings: Settings | None = None, apply_migrations: bool = False) -> Any:
        """Connect."""

    async def close(self) -> None:
        """Disconnect."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction."""

    async def enqueue(self, name: str, /, *, tx: Transaction | Foreign | None = None, **arguments: Any) -> Enqueued:
        """Enqueue a task by its name."""

    async def reserve_ids(self, n: int = 1) -> list[int]:
        """Job ids to enqueue with."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A portal of ours, and the database that was opened in it."""

    thread: PortalThread
    database: Database


class Opening:
    """Finds the way into the app's loop, and makes one where there is none."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._opened: Opened | None = None
        self._users = 0
        self._inherited: list[object] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=partial(_renew, weakref.ref(self)))

    def portal(self) -> Portal:
        """The way into the app's loop; opens the app where it is closed."""
        refuse_event_loop()
        opened = self._opened
        return opened.thread.portal if opened is not None and self._serves(opened) else self.open()

    def open(self, *, settings: Settings | None = None, apply_migrations: bool = False) -> Portal:
        """The same; with these settings, if it is not open yet."""
        refuse_event_loop()
        wait_seconds = (settings or self._app.settings).sync_wait_seconds
        with self._locked(wait_seconds):
            if self._opened is not None and self._serves(self._opened):
                return self._opened.thread.portal
            self._stop()
            elsewhere = self._elsewhere(wait_seconds)
            return elsewhere or self._start(settings, wait_seconds, apply_migrations=apply_migrations)

    def close(self) -> None:
        """Close what was opened here: cancel what runs, disconnect, end the thread."""
        refuse_event_loop()
        with self._locked(STOP_SECONDS):
            self._stop()

    def enter(self) -> None:
        """Open for one more block."""
        self.portal()
        with self._locked(STOP_SECONDS):
            self._users += 1

    def leave(self) -> None:
        """End a block; the last one closes."""
        with self._locked(STOP_SECONDS):
            self._users = max(0, self._users - 1)
            if self._users == 0:
                self._stop()

    def renew(self) -> None:
        """In the child of a fork: nothing is open, and no lock is held by a thread that does not exist here."""
        self._inherited.append(self._opened)
        self._opened = None
        self._users = 0
        self._lock = threading.Lock()

    def _serves(self, opened: Opened) -> bool:
        return opened.thread.portal.is_open and self._database() is opened.database

    def _database(self) -> Database | None:
        try:
            return self._app.database
        except LivewellError:
            return None

    def _elsewhere(self, wait_seconds: float) -> Portal | None:
        """The loop the app is open in, if somebody else opened it in this process."""
        database = self._database()
        if database is None:
            return None
        if database.process != os.getpid():
            self._inherited.append(database)  # kept: collecting it would close the parent's connections
            return None
        if database.loop is None or not database.loop.is_running():
            raise LivewellError(
                "the app was opened in an event loop that does not run (any more): "
                "close it there, or open it with app.sync.open() instead"
            )
        return Portal(database.loop, wait_seconds)

    def _start(self, settings: Settings | None, wait_seconds: float, *, apply_migrations: bool) -> Portal:
        thread = PortalThread(self._disconnect, wait_seconds)
        try:
            thread.start()
            thread.portal.run(lambda _: self._app.open(settings=settings, apply_migrations=apply_migrations))
            self._opened = Opened(thread, self._app.database)
        except BaseException:
            thread.stop()
            self._opened = None
            raise
        atexit.unregister(self.close)
        atexit.register(self.close)
        return thread.portal

    def _stop(self) -> None:
        if self._opened is not None:
            self._opened.thread.stop()
            self._opened = None
            atexit.unregister(self.close)

    async def _disconnect(self) -> None:
        """The last thing in our loop.

        The app may be open somewhere else by now, or be the parent's after a fork: not ours to
        close.
        """
        database = self._database()
        if database is not None and database.loop is asyncio.get_running_loop():
            await self._app.close()
        elif self._opened is not None:
            await self._opened.database.close()

    @contextmanager
    def _locked(self, seconds: float) -> Iterator[None]:
        if not self._lock.acquire(timeout=seconds):
            raise DatabaseUnavailable(f"app.sync: another thread has been opening or closing it for {seconds:g} s")
        try:
            yield
        finally:
            self._lock.release()


def _renew(reference: weakref.ref[Opening]) -> None:
    opening = reference()
    if opening is not None:
        opening.renew()
