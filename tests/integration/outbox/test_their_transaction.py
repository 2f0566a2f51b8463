"""tx= takes the transaction that the caller has, of whatever library (O1).

Broken once: without the look at autocommit an event of an autocommit connection is there although
its transaction "rolled back"; with the caller's own cursor its unread result is gone.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from livewell import Livewell, NewEvent, Settings
from livewell.errors import InvalidOption, InvalidPayload
from livewell.testing import opened
from tests.integration.outbox.their_transaction import ASYNC, BLOCKING, RollBack, django_connected, url
from tests.support.queue_sql import QueueSession

EVENTS = "SELECT key FROM livewell.event ORDER BY number"
JOBS = "SELECT (payload ->> 'user_id')::int FROM livewell.job ORDER BY id"


class Shop:
    """An app with one topic and one task."""

    def __init__(self, settings: Settings) -> None:
        self.app = Livewell(settings)
        self.app.outbox.topic("orders.created", payload_bytes_max=100)

        @self.app.task(queue="mail", name="welcome")
        async def welcome(user_id: int) -> None:
            """Greets."""

        self.welcome = welcome

    def all_kinds(self, tx: Any, first: int) -> None:
        """Everything that has a tx, blocking."""
        sync = self.app.sync
        sync.emit("orders.created", payload={"percent": "100 %s", "ü": "ß"}, key=f"k{first}", tenant="acme", tx=tx)
        sync.emit_many([NewEvent(topic="orders.created", payload=n, key=f"k{first + n}") for n in (1, 2)], tx=tx)
        sync.enqueue("welcome", user_id=first, tx=tx)
        sync.enqueue_many(self.welcome, [{"user_id": first + 1}, {"user_id": first + 2}], tx=tx)
        sync.enqueue(self.welcome.options(unique_key=f"u{first}"), user_id=first + 3, tx=tx)

    async def all_kinds_async(self, tx: Any, first: int) -> None:
        """The same, async."""
        emit = self.app.emit
        await emit("orders.created", payload={"percent": "100 %s", "ü": "ß"}, key=f"k{first}", tenant="acme", tx=tx)
        await emit.many([NewEvent(topic="orders.created", payload=n, key=f"k{first + n}") for n in (1, 2)], tx=tx)
        await self.app.enqueue("welcome", user_id=first, tx=tx)
        await self.welcome.enqueue_many([{"user_id": first + 1}, {"user_id": first + 2}], tx=tx)
        await self.welcome.options(unique_key=f"u{first}").enqueue(user_id=first + 3, tx=tx)


@pytest.fixture
def shop(livewell_settings: Settings) -> Iterator[Shop]:
    shop = Shop(livewell_settings)
    yield shop
    shop.app.sync.close()


@pytest.fixture
def observer(livewell_dsn: str) -> Iterator[QueueSession]:
    with QueueSession(livewell_dsn) as session:
        yield session


def is_kept(observer: QueueSession, first: int) -> bool:
    return observer.column(EVENTS) == [f"k{first + n}" for n in range(3)] and observer.column(JOBS) == [
        first + n for n in range(4)
    ]


@pytest.mark.parametrize("kind", BLOCKING)
def test_events_and_jobs_exist_exactly_if_the_transaction_commits(
    shop: Shop, livewell_dsn: str, observer: QueueSession, kind: str
) -> None:
    """Blocking code: psycopg, SQLAlchemy and Django themselves."""
    with pytest.raises(RollBack), BLOCKING[kind](livewell_dsn) as tx:
        shop.all_kinds(tx, 10)
        raise RollBack
    assert (observer.column(EVENTS), observer.column(JOBS)) == ([], [])

    with BLOCKING[kind](livewell_dsn) as tx:
        shop.all_kinds(tx, 20)
        assert (observer.column(EVENTS), observer.column(JOBS)) == ([], [])
    assert is_kept(observer, 20)
    assert observer.value("SELECT payload::text FROM livewell.event ORDER BY number LIMIT 1") == (
        '{"percent":"100 %s","ü":"ß"}'
    )


@pytest.mark.parametrize("kind", ASYNC)
async def test_async_events_and_jobs_exist_exactly_if_the_transaction_commits(
    shop: Shop, livewell_settings: Settings, observer: QueueSession, kind: str
) -> None:
    """Async code: psycopg, SQLAlchemy on both of its drivers, asyncpg."""
    dsn = livewell_settings.database_url
    assert dsn is not None
    async with opened(shop.app, livewell_settings):
        with pytest.raises(RollBack):
            async with ASYNC[kind](dsn.get_secret_value()) as tx:
                await shop.all_kinds_async(tx, 10)
                raise RollBack
        assert (observer.column(EVENTS), observer.column(JOBS)) == ([], [])

        async with ASYNC[kind](dsn.get_secret_value()) as tx:
            await shop.all_kinds_async(tx, 20)
            assert (observer.column(EVENTS), observer.column(JOBS)) == ([], [])
        assert is_kept(observer, 20)


@pytest.mark.parametrize("kind", BLOCKING)
def test_what_our_functions_refuse_is_our_error_in_every_library(shop: Shop, livewell_dsn: str, kind: str) -> None:
    """The same class and words, whoever wrapped it; and the library's own error stays its own."""
    with pytest.raises(InvalidOption, match=r"topic nowhere is not declared"), BLOCKING[kind](livewell_dsn) as tx:
        shop.app.sync.emit("nowhere", payload=1, tx=tx)
    with pytest.raises(InvalidPayload, match="102 bytes; 100 are allowed"), BLOCKING[kind](livewell_dsn) as tx:
        shop.app.sync.emit("orders.created", payload="x" * 100, tx=tx)


@pytest.mark.parametrize("kind", ASYNC)
async def test_async_it_is_our_error_too(shop: Shop, livewell_settings: Settings, livewell_dsn: str, kind: str) -> None:
    """Also through SQLAlchemy's adapter of asyncpg."""
    async with opened(shop.app, livewell_settings):
        with pytest.raises(InvalidOption, match=r"^topic nowhere is not declared"):
            async with ASYNC[kind](livewell_dsn) as tx:
                await shop.app.emit("nowhere", payload=1, tx=tx)


# -- refusals ------------------------------------------------------------------------------------


def test_a_connection_without_a_transaction_is_refused_for_events(
    shop: Shop, livewell_dsn: str, observer: QueueSession
) -> None:
    """In words that mend, for each library; nothing is emitted."""
    engine = create_engine(url(livewell_dsn, "psycopg"), isolation_level="AUTOCOMMIT")
    with (
        psycopg.connect(livewell_dsn, autocommit=True) as connection,
        django_connected(livewell_dsn) as django_connection,
        Session(engine) as session,
        engine.connect() as engine_connection,
    ):
        for tx, words in (
            (connection, r"with connection\.transaction\(\)"),
            (connection.cursor(), r"with connection\.transaction\(\)"),
            (django_connection, r"with transaction\.atomic\(\)"),
            (django_connection.cursor(), r"with transaction\.atomic\(\)"),
            (session, "AUTOCOMMIT"),
            (engine_connection, "AUTOCOMMIT"),
        ):
            with pytest.raises(InvalidOption, match=rf"no transaction is open on it .*{words}"):
                shop.app.sync.emit("orders.created", payload=1, tx=tx)
    engine.dispose()
    assert observer.column(EVENTS) == []


async def test_an_async_connection_without_a_transaction_is_refused_for_events(
    shop: Shop, livewell_settings: Settings, livewell_dsn: str, observer: QueueSession
) -> None:
    """The same, async."""
    engines = [create_async_engine(url(livewell_dsn, d), isolation_level="AUTOCOMMIT") for d in ("psycopg", "asyncpg")]
    raw = await asyncpg.connect(url(livewell_dsn, "x").set(drivername="postgresql").render_as_string(False))
    async with (
        opened(shop.app, livewell_settings),
        await psycopg.AsyncConnection.connect(livewell_dsn, autocommit=True) as connection,
        engines[0].connect() as on_psycopg,
        engines[1].connect() as on_asyncpg,
    ):
        for tx in (connection, connection.cursor(), on_psycopg, on_asyncpg, raw):
            with pytest.raises(InvalidOption, match="no transaction is open on it"):
                await shop.app.emit("orders.created", payload=1, tx=tx)
    await raw.close()
    for engine in engines:
        await engine.dispose()
    assert observer.column(EVENTS) == []


def test_anything_else_is_refused_by_its_type(shop: Shop, livewell_dsn: str) -> None:
    """With what is taken; and an async one with the API that takes it."""
    engine = create_engine(url(livewell_dsn, "psycopg"))
    for tx, name in ((object(), "builtins.object"), ("tx", "builtins.str"), (engine, "sqlalchemy.engine.base.Engine")):
        with pytest.raises(InvalidOption, match=rf"tx {name}: .* Taken are: app\.transaction\(\), .*psycopg.*Django"):
            shop.app.sync.emit("orders.created", payload=1, tx=tx)  # type: ignore[arg-type] # that is the point
    engine.dispose()
    async_engine = create_async_engine(url(livewell_dsn, "psycopg"))
    with pytest.raises(InvalidOption, match=r"AsyncConnection: it is async, .*await app\.emit"):
        shop.app.sync.emit("orders.created", payload=1, tx=async_engine.connect())
    asyncio.run(async_engine.dispose())


async def test_what_blocks_is_refused_in_a_loop(shop: Shop, livewell_settings: Settings, livewell_dsn: str) -> None:
    """It would stop every other task of the program."""
    async with opened(shop.app, livewell_settings):
        with psycopg.connect(livewell_dsn) as connection, pytest.raises(InvalidOption, match=r"app\.sync\.emit"):
            await shop.app.emit("orders.created", payload=1, tx=connection)  # type: ignore[arg-type] # that is the point
        with pytest.raises(InvalidOption, match=r"Taken are: app\.transaction\(\)"):
            await shop.app.emit("orders.created", payload=1, tx=shop.app.transaction())  # type: ignore[arg-type] # not entered


def test_none_of_these_libraries_is_imported_by_the_package() -> None:
    """Whoever has an object of theirs has imported them."""
    code = (
        "import sys, livewell, livewell.db.foreign, livewell.app; "
        "print([name for name in ('sqlalchemy', 'django', 'asyncpg', 'psycopg2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
