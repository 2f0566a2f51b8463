"""Which library a transaction of the caller's own belongs to, and how one is opened there."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any

from livewell.errors import InvalidOption

_IDLE = 0  # libpq: connected, and no transaction is open


class Kind(Enum):
    """A library, by the first part of its modules' names, and what opens a transaction in it."""

    PSYCOPG = "open one: with connection.transaction(): …, or connect without autocommit"
    PSYCOPG_ASYNC = "open one: async with connection.transaction(): …, or connect without autocommit"
    PSYCOPG2 = "connect without autocommit: connection.autocommit = False"
    SQLALCHEMY = 'take isolation_level="AUTOCOMMIT" from the engine or the connection'
    SQLALCHEMY_ASYNC = 'take isolation_level="AUTOCOMMIT" from the engine or the connection '
    DJANGO = "open one: with transaction.atomic(): …"
    ASYNCPG = "open one: async with connection.transaction(): …"
    CURSOR = "switch autocommit off"  # any cursor of DB-API
    ASYNC_CURSOR = "switch autocommit off "  # anything with an async execute()

    @property
    def is_async(self) -> bool:
        """True if it belongs to an event loop."""
        return self in (Kind.PSYCOPG_ASYNC, Kind.SQLALCHEMY_ASYNC, Kind.ASYNCPG, Kind.ASYNC_CURSOR)


def kind_of(tx: object) -> Kind:
    """Look at the modules of its class and of the classes that it is made from."""
    for made_from in type(tx).__mro__:
        module = made_from.__module__
        match module.partition(".")[0]:
            case "psycopg":
                return Kind.PSYCOPG_ASYNC if _has_async_execute(tx) else Kind.PSYCOPG
            case "psycopg2":
                return Kind.PSYCOPG2
            case "sqlalchemy":
                return Kind.SQLALCHEMY_ASYNC if module.startswith("sqlalchemy.ext.asyncio") else Kind.SQLALCHEMY
            case "django":
                return Kind.DJANGO
            case "asyncpg":
                return Kind.ASYNCPG
    return Kind.ASYNC_CURSOR if _has_async_execute(tx) else Kind.CURSOR


def require_open(tx: object, *, is_open: bool) -> None:
    """Refuse a connection on which the statement would be committed at once."""
    if not is_open:
        raise InvalidOption(
            f"tx {type(tx).__module__}.{type(tx).__qualname__}: no transaction is open on it (autocommit), so what is "
            f"done could not be rolled back with yours. Leave tx= away, or {kind_of(tx).value.strip()}"
        )


def is_open(connection: Any) -> bool:
    """Whether a connection as DB-API knows it has an open transaction, or opens one with the next statement."""
    if not getattr(connection, "autocommit", False):
        return True
    return bool(getattr(getattr(connection, "info", None), "transaction_status", _IDLE) != _IDLE)


def _has_async_execute(tx: object) -> bool:
    return inspect.iscoroutinefunction(getattr(tx, "execute", None))
