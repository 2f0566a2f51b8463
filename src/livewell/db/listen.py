"""Hear nudges: a LISTEN connection that proves to itself that it still hears.

    connecting ──listening──▶ hearing ──own ping not heard, or connection lost──▶ connecting (with back-off)
                                 │
                                 └── after every (re)connect: on_reconnect, so listeners catch up by reading

A nudge is a hint that saves waiting for the next poll; polling is the guarantee. Payloads are
channel names, never data: every role can read them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

import psycopg

from livewell.db.connection import Connection, connect, deadline, sever, translated
from livewell.errors import ConfigurationError, DatabaseUnavailable, LivewellError
from livewell.loops import backoff_seconds

CHANNEL = "livewell"
_HEAR_SECONDS = 2.0


class Listener:
    """Calls on_nudge(name) for every nudge and on_reconnect() after every (re)connect."""

    def __init__(
        self,
        conninfo: str,
        *,
        on_nudge: Callable[[str], None],
        on_reconnect: Callable[[], None],
        check_seconds: float,
        connect_seconds: float,
    ) -> None:
        self._conninfo = conninfo
        self._on_nudge = on_nudge
        self._on_reconnect = on_reconnect
        self._check_seconds = check_seconds
        self._connect_seconds = connect_seconds
        self.reconnects = 0
        self.hearing = asyncio.Event()
        self.backend_pid = 0

    async def run(self) -> None:
        """Listen until cancelled, through any number of lost connections."""
        failures = 0
        while True:
            try:
                await self._listen()
            except (LivewellError, psycopg.Error, OSError):
                failures = 0 if self.hearing.is_set() else failures + 1
            self.hearing.clear()
            self.reconnects += 1
            await asyncio.sleep(backoff_seconds(failures))

    async def _listen(self) -> None:
        connection = await connect(self._conninfo, seconds=self._connect_seconds, prepare=False)
        try:
            with deadline(connection, self._connect_seconds):
                await connection.execute(f"LISTEN {CHANNEL}".encode())
            self.backend_pid = connection.info.backend_pid
            self.hearing.set()
            self._on_reconnect()
            while True:
                await self._hear(connection)
        finally:
            sever(connection)
            await connection.close()

    async def _hear(self, connection: Connection) -> None:
        """Pass nudges on for one check interval, then ping ourselves and insist on hearing it."""
        await self._pass_on(connection, self._check_seconds)
        ping = f"ping:{secrets.token_hex(8)}"
        with deadline(connection, self._check_seconds + self._connect_seconds):
            await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, ping))
            notes = connection.notifies(timeout=self._connect_seconds)
            async for note in notes:
                if note.payload == ping:
                    await notes.aclose()
                    return
                self._on_nudge(note.payload)
        raise DatabaseUnavailable("the listener does not hear its own nudge")

    async def _pass_on(self, connection: Connection, seconds: float) -> None:
        """Pass nudges on the moment they come, for so many seconds.

        The event loop calls us when the socket is readable, and no task has to wake up in between.
        That saves 50 of the 300 µs from a commit to the claim.
        """
        loop = asyncio.get_running_loop()
        number = connection.pgconn.socket  # libpq forgets it when the connection is lost, and the loop must not keep it
        lost: asyncio.Future[None] = loop.create_future()

        def readable() -> None:
            try:
                connection.pgconn.consume_input()
                while (note := connection.pgconn.notifies()) is not None:
                    self._on_nudge(note.extra.decode())
            except psycopg.Error as error:
                loop.remove_reader(number)  # at once: libpq has closed it, and somebody else may get the number
                if not lost.done():
                    lost.set_exception(error)

        loop.add_reader(number, readable)
        try:
            await asyncio.wait([lost], timeout=seconds)
        finally:
            if not lost.done():
                loop.remove_reader(number)
        if lost.done():
            lost.result()


async def require_direct(conninfo: str, seconds: float, *, hear_seconds: float = _HEAR_SECONDS) -> None:
    """Refuse a transaction pooler on the listening address: LISTEN would hear nothing, silently."""
    listening = await connect(conninfo, seconds=seconds, prepare=False)
    try:
        with translated("listen_url"), deadline(listening, seconds):
            await listening.execute(f"LISTEN {CHANNEL}".encode())
            pid = await _scalar(listening, "SELECT pg_backend_pid()")
        if pid == listening.info.backend_pid or await _hears(listening, conninfo, seconds, hear_seconds):
            return
        raise ConfigurationError(
            "LIVEWELL_LISTEN_URL: this address is a transaction pooler, where LISTEN hears nothing. "
            "Set LIVEWELL_LISTEN_URL to the server's direct address (DATABASE_URL may stay on the pooler)"
        )
    finally:
        sever(listening)
        await listening.close()


async def _hears(listening: Connection, conninfo: str, seconds: float, hear_seconds: float) -> bool:
    """It is a pooler.

    In session mode our backend is ours and hears; in transaction mode it is lent to others while we
    wait.
    """
    ping = f"ping:{secrets.token_hex(8)}"
    speaking = await connect(conninfo, seconds=seconds, prepare=False)
    try:
        with translated("listen_url"), deadline(speaking, seconds):
            await speaking.execute("SELECT pg_notify(%s, %s)", (CHANNEL, ping))
    finally:
        await speaking.close()
    notes = listening.notifies(timeout=hear_seconds)
    async for note in notes:
        if note.payload == ping:
            await notes.aclose()
            return True
    return False


async def _scalar(connection: Connection, query: str) -> object:
    row = await (await connection.execute(query.encode())).fetchone()
    return row[0] if row else None
