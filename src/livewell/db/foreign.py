"""A transaction that the caller opened, with whatever library.

    fetch_in ──ours──▶ Transaction
        ├──async (async_foreign.py)──▶ run here
        ├──blocking, lent by app.sync (blocking_foreign.py)──▶ run in the thread that lent it
        └──anything else──▶ InvalidOption: what it is, and what is taken

One statement is run in it and all its rows are read; nothing is committed and nothing rolled back.
This is the only place that knows the libraries. But for psycopg it knows them by the names of their
modules: whoever has an object of theirs has imported them, so we need not.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol

from livewell.db.async_foreign import fetch_async
from livewell.db.blocking_foreign import fetch_blocking
from livewell.db.connection import Row, refusal
from livewell.db.database import Transaction
from livewell.db.foreign_kind import Kind, kind_of
from livewell.errors import InvalidOption

Ask = Callable[[Callable[[], list[Row]]], Awaitable[list[Row]]]

_TAKEN = (
    "app.transaction(), a connection or cursor of psycopg, SQLAlchemy's Session or Connection, "
    "Django's connection, or a connection of asyncpg (each as it is after `with … as tx`)"
)


class Foreign(Protocol):
    """A transaction somebody else opened: psycopg's async connection, or SQLAlchemy's AsyncSession."""

    async def execute(self, query: Any, params: Any = None, /) -> Any:
        """Run one statement."""


class WithExecute(Protocol):
    """The same for blocking code: a connection, a session or a cursor that has execute()."""

    def execute(self, query: Any, params: Any = None, /) -> Any:
        """Run one statement."""


class WithCursor(Protocol):
    """A connection without execute(), as Django's and psycopg2's are."""

    def cursor(self) -> Any:
        """Make a cursor."""


Blocking = WithExecute | WithCursor


class Lent:
    """A blocking connection, as the async API takes it.

    Every statement goes back to the thread that lent the connection: Django's connections allow no
    other, and an interrupt ends the statement as any of the caller's own.
    """

    def __init__(self, connection: Blocking, ask: Ask) -> None:
        if not _is_taken(connection):
            _refuse(connection)
        if kind_of(connection).is_async:
            raise InvalidOption(
                f"tx {_name(connection)}: it is async, and app.sync takes what blocks; use the async API with it: "
                "await app.emit(…, tx=tx), await task.enqueue(…, tx=tx)"
            )
        self._connection = connection
        self._ask = ask

    async def execute(self, query: str, params: Sequence[Any] = (), /, *, open_only: bool = False) -> list[Row]:
        """Run one statement, and answer all its rows."""
        return await self._ask(lambda: fetch_blocking(self._connection, query, params, open_only=open_only))


async def fetch_in(
    tx: Transaction | Foreign | Lent, query: str, params: Sequence[Any], *, open_only: bool = False
) -> list[Row]:
    """Run one statement in a transaction of whoever opened it, and answer all its rows.

    open_only: refuse a connection in autocommit on which no transaction is open, where the
    statement would be committed at once. An error of the caller's own library passes as it is; what
    our functions refuse is raised as our error.
    """
    if isinstance(tx, Transaction):
        return await tx.fetch(query, params)
    if isinstance(tx, Lent):
        with _refusals_are_ours():
            return await tx.execute(query, params, open_only=open_only)
    if not _is_taken(tx):
        _refuse(tx)
    if not kind_of(tx).is_async:
        raise InvalidOption(
            f"tx {_name(tx)}: it blocks, and the event loop would stand still; use it with "
            "app.sync.emit(…, tx=tx), app.sync.enqueue(…, tx=tx) in a thread of its own"
        )
    with _refusals_are_ours():
        return await fetch_async(tx, query, params, open_only=open_only)


def _is_taken(tx: object) -> bool:
    """True if it has what is called on it."""
    kind = kind_of(tx)
    if kind is Kind.SQLALCHEMY or kind is Kind.SQLALCHEMY_ASYNC:
        return hasattr(type(tx), "exec_driver_sql") or hasattr(type(tx), "connection")
    if kind is Kind.ASYNCPG:
        return hasattr(tx, "is_in_transaction")
    if kind is Kind.DJANGO:
        return hasattr(tx, "in_atomic_block") or hasattr(tx, "db")
    return callable(getattr(tx, "execute", None)) or (kind is Kind.PSYCOPG2 and hasattr(tx, "cursor"))


def _refuse(tx: object) -> NoReturn:
    raise InvalidOption(f"tx {_name(tx)}: it is no transaction that Livewell can use. Taken are: {_TAKEN}")


def _name(tx: object) -> str:
    kind = tx if inspect.isclass(tx) else type(tx)
    return f"{kind.__module__}.{kind.__qualname__}"


@contextmanager
def _refusals_are_ours() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        ours = refusal(error)
        if ours is None:
            raise
        raise ours from error
