"""Transactions of every library that tx= takes, opened on the test's own database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import django
import django.conf
import django.db
import psycopg
from django.db import transaction as django_transaction
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy import URL, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


class RollBack(Exception):
    """Ends a transaction without its effects."""


def url(dsn: str, driver: str) -> URL:
    """The address as SQLAlchemy takes it."""
    found = conninfo_to_dict(dsn)
    return URL.create(
        f"postgresql+{driver}",
        username=str(found["user"]),
        password=str(found.get("password", "")),
        host=str(found["host"]),
        port=int(found["port"] or 5432),
        database=str(found["dbname"]),
    )


# -- blocking ------------------------------------------------------------------------------------


@contextmanager
def psycopg_connection(dsn: str) -> Iterator[Any]:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        yield connection


@contextmanager
def psycopg_block(dsn: str) -> Iterator[Any]:
    """Autocommit, and a transaction that was opened by hand."""
    with psycopg.connect(dsn, autocommit=True) as connection, connection.transaction():
        yield connection


@contextmanager
def psycopg_cursor(dsn: str) -> Iterator[Any]:
    """With a result that the caller has not read yet."""
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 7")
        yield cursor
        assert cursor.fetchall() == [(7,)]


@contextmanager
def sqlalchemy_session(dsn: str) -> Iterator[Any]:
    engine = create_engine(url(dsn, "psycopg"))
    with Session(engine) as session, session.begin():
        yield session
    engine.dispose()


@contextmanager
def sqlalchemy_scoped_session(dsn: str) -> Iterator[Any]:
    engine = create_engine(url(dsn, "psycopg"))
    sessions = scoped_session(sessionmaker(engine))
    try:
        with sessions.begin():
            yield sessions
    finally:
        sessions.remove()
        engine.dispose()


@contextmanager
def sqlalchemy_connection(dsn: str) -> Iterator[Any]:
    engine = create_engine(url(dsn, "psycopg"))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


@contextmanager
def django_connected(dsn: str) -> Iterator[Any]:
    """Django's own global connection, to this database."""
    found = conninfo_to_dict(dsn)
    address = {"NAME": found["dbname"], "USER": found["user"], "PASSWORD": found.get("password", "")}
    address |= {"HOST": found["host"], "PORT": found["port"]}
    if not django.conf.settings.configured:
        django.conf.settings.configure(
            DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **address}},
            USE_TZ=True,
            LOGGING_CONFIG=None,
        )
        django.setup(set_prefix=False)
    django.db.connection.settings_dict.update(address)
    try:
        yield django.db.connection
    finally:
        django.db.connection.close()


@contextmanager
def django_connection(dsn: str) -> Iterator[Any]:
    with django_connected(dsn) as connection, django_transaction.atomic():
        yield connection


@contextmanager
def django_cursor(dsn: str) -> Iterator[Any]:
    with django_connected(dsn) as connection, django_transaction.atomic(), connection.cursor() as cursor:
        yield cursor


BLOCKING: dict[str, Callable[[str], AbstractContextManager[Any]]] = {
    "psycopg connection": psycopg_connection,
    "psycopg block": psycopg_block,
    "psycopg cursor": psycopg_cursor,
    "SQLAlchemy session": sqlalchemy_session,
    "SQLAlchemy scoped session": sqlalchemy_scoped_session,
    "SQLAlchemy connection": sqlalchemy_connection,
    "Django connection": django_connection,
    "Django cursor": django_cursor,
}


# -- async ---------------------------------------------------------------------------------------


@asynccontextmanager
async def async_psycopg_connection(dsn: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as connection:
        yield connection


@asynccontextmanager
async def async_psycopg_cursor(dsn: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection, connection.cursor() as cursor:
        await cursor.execute("SELECT 7")
        yield cursor
        assert await cursor.fetchall() == [(7,)]


def _session(driver: str) -> Callable[[str], AbstractAsyncContextManager[Any]]:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Any]:
        engine = create_async_engine(url(dsn, driver))
        try:
            async with AsyncSession(engine) as session, session.begin():
                yield session
        finally:
            await engine.dispose()

    return opened


def _connection(driver: str) -> Callable[[str], AbstractAsyncContextManager[Any]]:
    @asynccontextmanager
    async def opened(dsn: str) -> AsyncIterator[Any]:
        engine = create_async_engine(url(dsn, driver))
        try:
            async with engine.begin() as connection:
                yield connection
        finally:
            await engine.dispose()

    return opened


@asynccontextmanager
async def asyncpg_connection(dsn: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url(dsn, "x").set(drivername="postgresql").render_as_string(hide_password=False))
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


ASYNC: dict[str, Callable[[str], AbstractAsyncContextManager[Any]]] = {
    "psycopg connection": async_psycopg_connection,
    "psycopg cursor": async_psycopg_cursor,
    "SQLAlchemy session on psycopg": _session("psycopg"),
    "SQLAlchemy session on asyncpg": _session("asyncpg"),
    "SQLAlchemy connection on psycopg": _connection("psycopg"),
    "SQLAlchemy connection on asyncpg": _connection("asyncpg"),
    "asyncpg connection": asyncpg_connection,
}
