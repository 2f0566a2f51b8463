"""The database is away: whoever enqueues gets DatabaseUnavailable, whatever took it away (Q16)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

import livewell.app
from livewell import Livewell, Settings
from livewell.db import embedded
from livewell.db.connection import translate
from livewell.db.migrate import migrate
from livewell.db.prepare import prepare_schema
from livewell.errors import DatabaseUnavailable, LivewellError
from livewell.testing.processes import eventually_async
from livewell.testing.proxy import ThreadedProxy
from tests.faults.database_support import at_port, own_server, proxy_to

ENQUEUERS = 6


def settings(dsn: str, **more: object) -> Settings:
    return Settings.model_validate(
        {
            "database_url": SecretStr(dsn),
            "call_timeout_seconds": 1,
            "pool_wait_seconds": 1,
            "connect_timeout_seconds": 2,
        }
        | more
    )


@pytest.fixture
async def server() -> AsyncIterator[embedded.EmbeddedServer]:
    """A server of the test's own, which may be killed."""
    async with own_server({"fsync": "off"}) as server:
        await asyncio.to_thread(migrate, server.dsn)
        yield server


class Enqueuers:
    """Callers of every way to enqueue, who count what they are told."""

    def __init__(self, app: Livewell) -> None:
        self._app = app
        self.told: Counter[type[BaseException]] = Counter()
        self.messages: list[str] = []
        self.done = 0

    async def run(self, stop: asyncio.Event) -> None:
        @self._app.task()
        async def note(n: int) -> None: ...

        async def each(n: int) -> None:
            while not stop.is_set():
                try:
                    match n % 3:
                        case 0:
                            await note.enqueue(n=n)
                        case 1:
                            await note.enqueue_many([{"n": k} for k in range(50)], unique_key=lambda a: str(a["n"]))
                        case _:
                            async with self._app.transaction() as tx:
                                await tx.execute("SELECT 1")
                                await note.enqueue(n=n, tx=tx)
                    self.done += 1
                except Exception as error:  # noqa: BLE001 - what the test is about
                    self.told[type(error)] += 1
                    self.messages.append(str(error))

        async with asyncio.TaskGroup() as group:
            for n in range(ENQUEUERS):
                group.create_task(each(n))


@pytest.mark.parametrize("way", ["kill", "freeze", "cut", "half_open", "terminate"])
async def test_enqueuers_are_told_one_class_of_error_for_every_way_the_database_is_away(
    server: embedded.EmbeddedServer, way: str
) -> None:
    """kill -9, SIGSTOP, a cut in the middle of an answer, a half-open connection, an administrator.

    "away, try again" is DatabaseUnavailable and nothing else.

    Seen failing: a connection that broke in the middle of an answer was a bare DatabaseError (536
    of 741 errors in a campaign).
    """
    async with proxy_to(server.dsn) as proxy:
        app = Livewell(settings(at_port(server.dsn, proxy.port)))
        async with app:
            enqueuers, stop = Enqueuers(app), asyncio.Event()
            running = asyncio.create_task(enqueuers.run(stop))
            for _ in range(4):
                before = enqueuers.done
                await eventually_async(lambda: enqueuers.done > before + 20, timeout=60)  # noqa: B023 - awaited in this round
                told = enqueuers.told.total()
                match way:
                    case "kill":
                        os.kill(embedded.status(server.data_dir).pid, signal.SIGKILL)  # type: ignore[union-attr]  # it runs
                    case "freeze":
                        _signal_all(server, signal.SIGSTOP)
                    case "cut":
                        proxy.reset_after(60)
                    case "half_open":
                        proxy.freeze()
                    case _:
                        _terminate(server.dsn)
                await eventually_async(lambda: enqueuers.told.total() > told or way == "terminate", timeout=60)  # noqa: B023 - awaited in this round
                match way:
                    case "kill":
                        await asyncio.to_thread(embedded.start, server.data_dir)
                    case "freeze":
                        _signal_all(server, signal.SIGCONT)
                    case _:
                        proxy.heal()
            stop.set()
            await running
    assert set(enqueuers.told) <= {DatabaseUnavailable}, enqueuers.told
    assert not [text for text in enqueuers.messages if "our own deadline" in text and "unexpectedly" in text]


async def test_a_deadline_of_our_own_is_not_told_as_a_crash_of_the_server(livewell_dsn: str) -> None:
    """It names the deadline and what ran.

    Seen failing: "server closed the connection unexpectedly", where we had closed it ourselves
    (S8).
    """
    async with Livewell(settings(livewell_dsn, call_timeout_seconds=0.2)) as app:
        with pytest.raises(DatabaseUnavailable) as told:
            await app.database.call("SELECT   pg_sleep(30)")
        link = app.database.link()
        with pytest.raises(DatabaseUnavailable) as told_by_link:
            await link.call("SELECT pg_sleep(30)")
        with pytest.raises(DatabaseUnavailable) as told_in_transaction:
            async with app.transaction() as tx:
                await tx.fetch("SELECT pg_sleep(30)")
    for one in (told, told_by_link, told_in_transaction):
        assert "no answer within our own deadline of 0.2 s, so we closed the connection" in str(one.value)
        assert "it was running: SELECT pg_sleep(30)" in str(one.value)
        assert "unexpectedly" not in str(one.value)


def test_an_answer_that_broke_off_is_an_outage() -> None:
    """psycopg's bare DatabaseError has no SQLSTATE: libpq made it, no server did."""
    error = psycopg.DatabaseError("server closed the connection unexpectedly")
    assert isinstance(translate(error, "call"), DatabaseUnavailable)
    assert translate(psycopg.ProgrammingError("the query has 2 placeholders"), "call") is None


def _terminate(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'livewell'")


def _signal_all(server: embedded.EmbeddedServer, number: int) -> None:
    """The postmaster and every child of it."""
    running = embedded.status(server.data_dir)
    assert running is not None
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    for pid in [running.pid, *map(int, children)]:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def test_an_app_that_could_not_be_opened_says_unavailable_and_opens_later(
    livewell_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outage begins while app.sync opens.

    Each call is told DatabaseUnavailable, and the first one after the outage succeeds.

    Opening is all or nothing: nothing of a failed one may be in the way of the next.
    """
    parts = conninfo_to_dict(livewell_dsn)
    host, port = str(parts.get("host") or "127.0.0.1"), int(str(parts.get("port") or 5432))
    told: Counter[type[BaseException]] = Counter()
    with ThreadedProxy(host, port) as proxy:
        app = Livewell(settings(at_port(livewell_dsn, proxy.port)))

        @app.task()
        async def note(n: int) -> None: ...

        def prepare_then_lose(*arguments: Any, **options: Any) -> None:
            prepare_schema(*arguments, **options)
            proxy.refuse()

        monkeypatch.setattr(livewell.app, "prepare_schema", prepare_then_lose)
        for _ in range(3):
            try:
                app.sync.enqueue(note, n=1)
            except Exception as error:  # noqa: BLE001 - what the test is about
                told[type(error)] += 1
        monkeypatch.undo()
        proxy.accept()
        assert app.sync.enqueue(note, n=1).id > 0
        app.sync.close()
    assert told == {DatabaseUnavailable: 3}


async def test_who_enqueues_after_a_failed_open_is_told_why(livewell_dsn: str) -> None:
    """Not open because the database was away is "try again".

    Never opened is the caller's own mistake.
    """
    app = Livewell(settings(at_port(livewell_dsn, 1)))

    @app.task()
    async def note() -> None: ...

    with pytest.raises(LivewellError) as mistake:
        await note.enqueue()
    assert not isinstance(mistake.value, DatabaseUnavailable)
    with pytest.raises(DatabaseUnavailable):
        await app.open()
    with pytest.raises(DatabaseUnavailable, match="the database was away"):
        await note.enqueue()
