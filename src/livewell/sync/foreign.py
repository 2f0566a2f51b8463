"""A blocking connection of the caller's own, as the transaction to enqueue in.

    a psycopg connection or cursor, a psycopg2 cursor       tx=connection
    Django                                                  with transaction.atomic(), connection.cursor() as tx: …
    SQLAlchemy                                              tx=session.connection()

Only `SELECT * FROM livewell.enqueue_jobs(…)` is run on it, in the caller's thread: Django's
connections allow no other, and an interrupt ends the statement as any of the caller's own. There is
no nudge (we do not see the commit): such a job is found within the poll interval.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from livewell.errors import InvalidOption

Ask = Callable[[Callable[[], list[Any]]], Awaitable[list[Any]]]


class BlockingForeign(Protocol):
    """A blocking connection of the caller's own.

    It has the execute() of psycopg, or of a DB-API cursor that takes %s, or is SQLAlchemy's
    Connection.
    """

    def execute(self, query: Any, params: Any = None, /) -> Any:
        """Run one statement."""


class Lent:
    """A blocking connection, as the async API takes it.

    Every statement goes back to the thread that lent the connection.
    """

    def __init__(self, connection: BlockingForeign, ask: Ask) -> None:
        if inspect.iscoroutinefunction(getattr(connection, "execute", None)):
            raise InvalidOption(f"tx {type(connection).__name__}: it is async; app.sync takes a blocking connection")
        self._connection = connection
        self._ask = ask

    async def execute(self, query: Any, params: Any = None) -> Rows:
        """Run one statement."""
        return Rows(await self._ask(lambda: _fetch(self._connection, query, params)))


class Rows:
    """What a statement answered, as an async cursor."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    async def fetchall(self) -> list[Any]:
        """All of it."""
        return self._rows


def _fetch(connection: Any, query: str, params: Any) -> list[Any]:
    # SQLAlchemy's execute() takes no text; DB-API cursors answer nothing, their rows are in the
    # cursor itself.
    execute = getattr(connection, "exec_driver_sql", connection.execute)
    answer = execute(query, tuple(params))
    return list((answer if hasattr(answer, "fetchall") else connection).fetchall())
