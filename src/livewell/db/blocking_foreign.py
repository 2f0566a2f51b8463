"""One statement in a transaction of a blocking library, in the thread that it belongs to.

psycopg      connection or cursor; a cursor of ours, so that the caller's keeps its result
psycopg2     connection or cursor
SQLAlchemy   Session or Connection
Django       django.db.connection, or a cursor of it
any other    a cursor as DB-API knows it, that takes %s
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from livewell.db.async_foreign import in_style
from livewell.db.connection import Row
from livewell.db.foreign_kind import Kind, is_open, kind_of, require_open


def fetch_blocking(tx: Any, query: str, params: Sequence[Any], *, open_only: bool) -> list[Row]:
    """Run it, and answer all its rows."""
    match kind_of(tx):
        case Kind.PSYCOPG:
            connection = tx if isinstance(tx, psycopg.Connection) else tx.connection
            require_open(tx, is_open=not open_only or is_open(connection))
            with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
                return cursor.execute(query.encode(), params).fetchall()
        case Kind.SQLALCHEMY:
            return _sqlalchemy(tx, query, params, open_only=open_only)
        case Kind.DJANGO:
            connection = getattr(tx, "db", tx)  # a cursor of Django's knows its connection by this name
            within = connection.in_atomic_block or not connection.get_autocommit()
            require_open(tx, is_open=not open_only or within)
            return _with_cursor(connection, query, params)
        case Kind.PSYCOPG2:
            connection = tx if hasattr(tx, "cursor") else tx.connection
            require_open(tx, is_open=not open_only or is_open(connection))
            return _with_cursor(connection, query, params)
    require_open(tx, is_open=not open_only or is_open(getattr(tx, "connection", tx)))
    answer = getattr(tx, "exec_driver_sql", tx.execute)(query, tuple(params))
    return _rows(answer if hasattr(answer, "fetchall") else tx)


def _sqlalchemy(tx: Any, query: str, params: Sequence[Any], *, open_only: bool) -> list[Row]:
    connection = tx if hasattr(type(tx), "exec_driver_sql") else tx.connection()
    require_open(tx, is_open=not open_only or is_open(connection.connection.dbapi_connection))
    return _rows(connection.exec_driver_sql(in_style(connection.dialect.paramstyle, query), tuple(params)))


def _with_cursor(connection: Any, query: str, params: Sequence[Any]) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(query, tuple(params))
        return _rows(cursor)


def _rows(cursor: Any) -> list[Row]:
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in cursor.fetchall()]
