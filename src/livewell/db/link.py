"""A connection of one's own, past the pool and past psycopg's cursors.

closed ──the next call──▶ open ──call, answer──▶ open
                            └──any failure, or the deadline──▶ closed
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, overload

import psycopg
from psycopg import errors as pg
from psycopg import generators, waiting
from psycopg.abc import PQGen
from psycopg.adapt import Transformer

from livewell.db.connection import Connection, Cursor, Deadline, Row, connect, has_rows, other, sever, translate

Statement = tuple[str, Sequence[str | None]]
"""With $1, $2 … and its parameters as text."""
T = TypeVar("T")

_LOOK_SECONDS = 0.1
_VOID = 2278  # the type of what a function without a result answers: one row with nothing in it


def as_array(texts: Iterable[str]) -> str:
    """An array of texts as Postgres writes it, for ask()."""
    return "{" + ",".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts) + "}"


def as_numbers(numbers: Iterable[int | None]) -> str:
    """An array of numbers as Postgres writes it; the driver's own dumper takes 3 µs for each."""
    return f"{{{','.join('NULL' if number is None else str(number) for number in numbers)}}}"


class Link:
    """One connection that reconnects when it is next needed.

    For loops that must not wait for the pool: handlers may have taken all its connections.
    """

    def __init__(
        self, conninfo: str, *, call_seconds: float, connect_seconds: float, prepare: bool, options: str = ""
    ) -> None:
        self._conninfo = conninfo
        self._prepare = prepare
        self._call_seconds = call_seconds
        self._connect_seconds = connect_seconds
        self._options = options
        self._cursor: Cursor | None = None  # one for all calls: making it takes 25 µs
        self._encoding = "utf-8"
        self._prepared: dict[str, bytes] = {}
        self._rider = False  # a statement rode along with the last one; its answer has not been read
        self.riders_failed = 0
        self._turn = asyncio.Lock()  # one at a time, so that a deadline starts when its call does

    @property
    def busy(self) -> bool:
        """Whether a call would wait for another one."""
        return self._turn.locked()

    @property
    def takes_riders(self) -> bool:
        """Whether ask() may bring a second statement along.

        Not through a pooler, which may hand it to another server process.
        """
        return self._prepare

    async def call(self, query: str, params: Sequence[Any] = ()) -> list[Row]:
        """Run one statement.

        On any failure the connection is dropped, and the next call opens a new one.
        """

        async def fetch(cursor: Cursor) -> list[Row]:
            await cursor.execute(query.encode(), params)
            return await cursor.fetchall() if has_rows(cursor) else []

        return await self._run(fetch, query)

    async def ask(self, query: str, params: Sequence[str | None], *, then: Statement | None = None) -> list[Row]:
        """Like ask_unread(), with the rows read."""
        return (await self.ask_unread(query, params, then=then)).read()

    async def ask_unread(self, query: str, params: Sequence[str | None], *, then: Statement | None = None) -> Unread:
        """Like call(), with $1, $2 … and parameters as text, past psycopg's cursors.

        An enqueue takes 580 instead of 680 µs. For statements that are few in kind and many in
        number.

        `then` rides along: the server runs it in a transaction of its own as soon as this one has
        committed, without asking us again. Nobody waits for its answer.
        """

        async def ask(cursor: Cursor) -> Unread:
            connection = cursor.connection
            if not self._prepare:
                connection.pgconn.send_query_params(query.encode(), self._values(params))
                return await self._rows(connection)
            name = await self._name(connection, query)
            if then is None:
                connection.pgconn.send_query_prepared(name, self._values(params))
                return await self._rows(connection)
            rider = await self._name(connection, then[0])
            connection.pgconn.enter_pipeline_mode()
            for each, values in ((name, params), (rider, then[1])):
                connection.pgconn.send_query_prepared(each, self._values(values))
                connection.pgconn.pipeline_sync()
            self._rider = True
            return Unread(connection, await _steps(connection, _answer(connection.pgconn)))

        return await self._run(ask, query)

    async def _name(self, connection: Connection, query: str) -> bytes:
        """Of the statement as this connection has prepared it."""
        name = self._prepared.get(query)
        if name is None:
            name = f"livewell_{len(self._prepared)}".encode()
            connection.pgconn.send_prepare(name, query.encode())
            await self._rows(connection)
            self._prepared[query] = name
        return name

    def _values(self, params: Sequence[str | None]) -> list[bytes | None]:
        return [None if text is None else text.encode(self._encoding) for text in params]

    async def _rows(self, connection: Connection) -> Unread:
        """What one statement that was sent answers."""
        results = await _steps(connection, generators.execute(connection.pgconn))
        if not results:
            raise psycopg.OperationalError("the server did not answer")
        return Unread(connection, results[-1])  # a second one is the server's last word: that it ends the connection

    async def _let_off(self, connection: Connection) -> None:
        """Read what the rider answered; it has been there for long."""
        result = await _steps(connection, _answer(connection.pgconn))
        connection.pgconn.exit_pipeline_mode()
        self._rider = False
        self.riders_failed += result.status not in (psycopg.pq.ExecStatus.TUPLES_OK, psycopg.pq.ExecStatus.COMMAND_OK)

    async def close(self) -> None:
        """Close without waiting for the server."""
        cursor, self._cursor = self._cursor, None
        self._prepared.clear()
        self._rider = False
        if cursor is not None:
            sever(cursor.connection)
            await cursor.connection.close()

    async def _run(self, work: Callable[[Cursor], Awaitable[T]], query: str) -> T:
        async with self._turn:
            if self._cursor is None:
                connection = await connect(
                    self._conninfo, seconds=self._connect_seconds, prepare=self._prepare, options=self._options
                )
                self._cursor = connection.cursor()
                self._encoding = connection.info.encoding
            cursor = self._cursor
            limit = Deadline(cursor.connection, self._call_seconds, query)
            try:
                if self._rider:
                    await self._let_off(cursor.connection)
                return await work(cursor)
            except BaseException as error:
                await self.close()
                if isinstance(error, psycopg.Error):
                    raise limit.explain("call") or translate(error, "call") or other(error, "call") from error
                raise
            finally:
                limit.cancel()


async def _steps(connection: Connection, generator: PQGen[T]) -> T:
    """All of them, as the socket becomes ready.

    Without connection.wait(), which asks the server to cancel when we are cancelled.

    It looks at the socket again every tenth of a second, and that is needed: uvloop forgets a
    socket when the server cuts the connection, after one last wake that may find only half of what
    there is to read. Waits without this look lasted for ever
    (tests/integration/queue/test_link.py).
    """
    return await waiting.wait_async(generator, connection.pgconn.socket, interval=_LOOK_SECONDS)


def _answer(pgconn: psycopg.pq.abc.PGconn) -> PQGen[psycopg.pq.abc.PGresult]:
    """The result of the next statement of a pipeline, up to its end."""
    yield from generators.send(pgconn)
    result: psycopg.pq.abc.PGresult | None = yield from generators.fetch(pgconn)
    while (yield from generators.fetch(pgconn)) is not None:
        pass
    end = yield from generators.fetch(pgconn)
    if result is None or end is None or end.status != psycopg.pq.ExecStatus.PIPELINE_SYNC:
        raise psycopg.OperationalError("the server did not answer a statement of a pipeline")
    return result


class Unread(Sequence[Row]):
    """Rows as the server sent them, converted to Python only when somebody looks at one.

    A worker sends its next call first, so that the server has something to do meanwhile.
    """

    def __init__(self, connection: Connection, result: psycopg.pq.abc.PGresult) -> None:
        self._result = result
        self._load: Callable[[], list[Row]] = list
        self._rows: list[Row] | None = None
        self._n = 0
        if result.status == psycopg.pq.ExecStatus.TUPLES_OK:
            self._n = 0 if result.ntuples == 0 or result.ftype(0) == _VOID else result.ntuples
        elif result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise pg.error_from_result(result, connection.info.encoding)
        if self._n:  # most statements answer nothing, and it takes 15 µs
            transformer = Transformer(connection)
            transformer.set_pgresult(result)
            self._load = partial(transformer.load_rows, 0, self._n, tuple)

    @property
    def first(self) -> bytes | None:
        """The first value of the first row, as it was sent."""
        return self._result.get_value(0, 0) if self._n else None

    def read(self) -> list[Row]:
        """All of them."""
        if self._rows is None:
            self._rows = self._load()
        return self._rows

    def __len__(self) -> int:
        """How many; nothing is read for that."""
        return self._n

    def __iter__(self) -> Iterator[Row]:
        """One after the other."""
        return iter(self.read())

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        """One of them, or some."""
        return self.read()[place]
