"""One statement in a transaction of an async library.

psycopg      connection or cursor; a cursor of ours, so that the caller's keeps its result
SQLAlchemy   AsyncSession or AsyncConnection, with psycopg or asyncpg below
asyncpg      connection, also one from a pool
any other    an async execute() that takes %s and answers a cursor
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from livewell.db.connection import Row
from livewell.db.foreign_kind import Kind, is_open, kind_of, require_open


async def fetch_async(tx: Any, query: str, params: Sequence[Any], *, open_only: bool) -> list[Row]:
    """Run it, and answer all its rows."""
    match kind_of(tx):
        case Kind.PSYCOPG_ASYNC:
            return await _psycopg(tx, query, params, open_only=open_only)
        case Kind.SQLALCHEMY_ASYNC:
            return await _sqlalchemy(tx, query, params, open_only=open_only)
        case Kind.ASYNCPG:
            require_open(tx, is_open=not open_only or tx.is_in_transaction())
            return [tuple(record.values()) for record in await tx.fetch(numbered(query), *params)]
    require_open(tx, is_open=not open_only or is_open(getattr(tx, "connection", tx)))
    cursor = await tx.execute(query, params)
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in await cursor.fetchall()]


async def _psycopg(tx: Any, query: str, params: Sequence[Any], *, open_only: bool) -> list[Row]:
    connection = tx if isinstance(tx, psycopg.AsyncConnection) else tx.connection
    require_open(tx, is_open=not open_only or is_open(connection))
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(query.encode(), params)
        return await cursor.fetchall()


async def _sqlalchemy(tx: Any, query: str, params: Sequence[Any], *, open_only: bool) -> list[Row]:
    connection = tx if hasattr(type(tx), "exec_driver_sql") else await tx.connection()
    if open_only:
        below = connection.sync_connection.connection.dbapi_connection
        require_open(tx, is_open=is_open(below))
    statement = in_style(connection.dialect.paramstyle, query)
    return [tuple(row) for row in (await connection.exec_driver_sql(statement, tuple(params))).fetchall()]


def in_style(paramstyle: str, query: str) -> str:
    """A statement with its %s as the driver below SQLAlchemy wants them."""
    return numbered(query) if paramstyle == "numeric_dollar" else query


def numbered(query: str) -> str:
    """A statement with $1, $2 … for its %s."""
    first, *others = query.split("%s")
    return first + "".join(f"${place}{rest}" for place, rest in zip(count(1), others, strict=False))
