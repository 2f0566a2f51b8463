"""The pool, single calls and transactions.

If the address is a transaction pooler (PgBouncer), nothing may depend on the session: no prepared
statements, no session settings. open() finds that out. It compares the backend's own process id
with the one that the connection was told: a pooler invents the latter.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from livewell.db import acts
from livewell.db.connection import Connection, Row, connect, deadline, has_rows, translated
from livewell.db.link import Link
from livewell.db.session import startup_options
from livewell.errors import ConfigurationError, DatabaseUnavailable, LivewellError, ReplicaRefused
from livewell.settings import Settings


@dataclass(frozen=True, slots=True)
class Address:
    """What open() found out about the server behind a connection string."""

    version: int
    pooled: bool
    replica: bool


class Transaction:
    """One open transaction.

    Every statement has the call deadline. Functions in on_commit run after the commit.
    """

    def __init__(self, connection: Connection, call_seconds: float) -> None:
        self.connection = connection
        self.on_commit: list[Callable[[], None]] = []
        self._call_seconds = call_seconds

    async def execute(self, query: str, params: Sequence[Any] | dict[str, Any] | None = None) -> int:
        """Run one statement; answers how many rows it touched."""
        with translated("execute", foreign=True), deadline(self.connection, self._call_seconds, "execute", query):
            return (await self.connection.execute(query.encode(), params)).rowcount

    async def commit(self) -> None:
        """Commit.

        An earlier error that was swallowed makes Postgres roll back instead, and that must not look
        like success.
        """
        with translated("commit"), deadline(self.connection, self._call_seconds, "commit", "COMMIT"):
            cursor = await self.connection.execute("COMMIT")
        if cursor.statusmessage != "COMMIT":
            raise LivewellError(
                "nothing was committed: a statement failed earlier in this transaction and the error was swallowed"
            )

    async def fetch(self, query: str, params: Sequence[Any] | dict[str, Any] | None = None) -> list[Row]:
        """Run one statement and answer all its rows."""
        with translated("fetch", foreign=True), deadline(self.connection, self._call_seconds, "fetch", query):
            return await (await self.connection.execute(query.encode(), params)).fetchall()


class Database:
    """A pool on the given address, opened lazily by open()."""

    def __init__(
        self, conninfo: str, settings: Settings, *, listen_conninfo: str | None = None, bounded: bool = False
    ) -> None:
        """Set up, not connected.

        bounded: the server ends a statement after statement_timeout_seconds, also behind a pooler.

        There each call is then a transaction that says so: two round trips more.
        """
        self._bounded = bounded
        self.conninfo = conninfo
        self.listen_conninfo = listen_conninfo or conninfo
        self.settings = settings
        self.address = Address(version=0, pooled=False, replica=False)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.process = 0
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._links: list[
            Link
        ] = []  # kept: after a fork, collecting one in the child would close the parent's connection

    async def open(self) -> None:
        """Look at the server, refuse what cannot work, and open the pool.

        It belongs to this loop and this process from then on.
        """
        self.loop, self.process = asyncio.get_running_loop(), os.getpid()
        self.address = await inspect(self.conninfo, self.settings.connect_timeout_seconds)
        if self.address.version < 150000:
            raise ConfigurationError(
                f"DATABASE_URL: the server is Postgres {self.address.version // 10000}; Livewell needs 15 or newer"
            )
        self._pool = AsyncConnectionPool(
            self.conninfo,
            min_size=1,
            max_size=self.settings.pool_size_max,
            timeout=self.settings.pool_wait_seconds,
            # The pool doubles its pause between attempts up to this; a long one would sleep on
            # after an outage is over. New calls make new attempts.
            reconnect_timeout=2,
            open=False,
            kwargs={
                "autocommit": True,
                "prepare_threshold": None if self.address.pooled else 5,
                "connect_timeout": max(2, round(self.settings.connect_timeout_seconds)),
                "application_name": "livewell",
                "client_encoding": "utf8",
                **({} if self.address.pooled else {"options": self._session()}),
            },
        )
        await self._pool.open()

    async def close(self) -> None:
        """Close the pool; calls afterwards fail."""
        pool, self._pool = self._pool, None
        if self._checking is not None:
            self._checking.cancel()
        if pool is not None:
            await pool.close(timeout=2)

    def require_primary(self) -> None:
        """Refuse to decide anything on a replica's old data (R28)."""
        if self.address.replica:
            raise ReplicaRefused(
                "this server is a replica; claims and limits run on the primary: set DATABASE_URL to it"
            )

    def link(self, *, seconds: float | None = None) -> Link:
        """A connection of its own, outside the pool."""
        link = Link(
            self.conninfo,
            call_seconds=seconds or self.settings.call_timeout_seconds,
            prepare=not self.address.pooled,
            connect_seconds=self.settings.connect_timeout_seconds,
            options="" if self.address.pooled else self._session(),
        )
        self._links.append(link)
        return link

    async def call(self, query: str, params: Sequence[Any] = (), *, seconds: float | None = None) -> list[Row]:
        """Run one statement in its own transaction and answer its rows."""
        limit = seconds or self.settings.call_timeout_seconds
        async with self._connection() as connection, self._said_timeout(connection):
            with translated("call"), deadline(connection, limit, "call", query):
                cursor = await connection.execute(query.encode(), params)
                return await cursor.fetchall() if has_rows(cursor) else []

    async def call_dicts(self, query: str, params: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The same, with rows as dictionaries: for lists that people read."""
        limit = self.settings.call_timeout_seconds
        async with self._connection() as connection, self._said_timeout(connection):
            with translated("call"), deadline(connection, limit, "call", query):
                cursor = connection.cursor(row_factory=dict_row)
                await cursor.execute(query.encode(), params)
                return await cursor.fetchall()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open a transaction; it commits when the block ends and rolls back when it raises."""
        async with self._connection() as connection:
            transaction = Transaction(connection, self.settings.call_timeout_seconds)
            await transaction.execute(self._begin() if self._says_timeout else "BEGIN")
            try:
                yield transaction
            except BaseException:
                await self._roll_back(connection)
                raise
            await transaction.commit()
        for callback in transaction.on_commit:
            callback()

    @property
    def _says_timeout(self) -> bool:
        return self._bounded and self.address.pooled

    def _begin(self) -> str:
        """What a session has from its start, for one transaction of a session that is everybody's."""
        return f"BEGIN; SET LOCAL statement_timeout = {round(self.settings.statement_timeout_seconds * 1000)}"

    @asynccontextmanager
    async def _said_timeout(self, connection: Connection) -> AsyncIterator[None]:
        """A transaction around a call, if the server would not end the call by itself."""
        if not self._says_timeout:
            yield
            return
        transaction = Transaction(connection, self.settings.call_timeout_seconds)
        await transaction.execute(self._begin())
        try:
            yield
        except BaseException:
            await self._roll_back(connection)
            raise
        await transaction.commit()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        if self._pool is None:
            raise DatabaseUnavailable(
                "the database is not open: call app.open() first, or use `async with app:`", was_sent=False
            )
        try:
            connection = await self._pool.getconn()
        except PoolTimeout as error:
            raise DatabaseUnavailable(
                f"no free connection within {self.settings.pool_wait_seconds:g} s: "
                f"the server does not answer, or all {self.settings.pool_size_max} are in use (LIVEWELL_POOL_SIZE_MAX)",
                was_sent=False,
            ) from error
        except (psycopg.OperationalError, PoolClosed) as error:
            raise DatabaseUnavailable(f"no connection: {error}", was_sent=False) from error
        acts.sending()
        try:
            yield connection
        finally:
            if connection.broken or connection.closed:
                self._check_the_others()
            await self._pool.putconn(connection) if self._pool else await connection.close()

    async def _roll_back(self, connection: Connection) -> None:
        if connection.closed or connection.broken:
            return
        try:
            with deadline(connection, self.settings.call_timeout_seconds):
                await connection.rollback()
        except (psycopg.Error, DatabaseUnavailable):
            await connection.close()  # the pool replaces a closed connection; the server rolls back by itself

    def _check_the_others(self) -> None:
        """One connection broke: after a restart all of them are dead, so look before others trip over them."""
        if self._pool is not None and (self._checking is None or self._checking.done()):
            self._checking = asyncio.create_task(self._pool.check())

    def _session(self) -> str:
        return startup_options(
            {
                "statement_timeout": round(self.settings.statement_timeout_seconds * 1000),
                "idle_in_transaction_session_timeout": round(self.settings.idle_in_transaction_seconds * 1000),
            }
        )


async def inspect(conninfo: str, seconds: float) -> Address:
    """Version, pooler or not, primary or not."""
    connection = await connect(conninfo, seconds=seconds, prepare=False)
    try:
        with translated("inspect"), deadline(connection, seconds, "inspect"):
            cursor = await connection.execute("SELECT pg_backend_pid(), pg_is_in_recovery()")
            row = await cursor.fetchone()
        pid, replica = row or (0, False)
        return Address(connection.info.server_version, pooled=pid != connection.info.backend_pid, replica=replica)
    finally:
        await connection.close()
