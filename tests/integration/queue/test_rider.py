"""A statement that rides along behind another one on the same connection.

Run after its commit, and waited for by nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from pydantic import SecretStr

from livewell import Livewell, Settings
from livewell.db import Database
from livewell.db.link import Link
from livewell.errors import DatabaseError
from livewell.testing.processes import eventually_async

COUNT = "SELECT count(*)::int FROM public.ridden WHERE n = $1::int"
ADD = "INSERT INTO public.ridden VALUES ($1::int)"


@asynccontextmanager
async def linked(dsn: str) -> AsyncIterator[Link]:
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("CREATE TABLE public.ridden (n int, x xid8 DEFAULT pg_current_xact_id())")
    database = Database(dsn, Settings())
    link = database.link()
    yield link
    await link.close()


async def test_a_rider_runs_after_the_commit_in_a_transaction_of_its_own(livewell_dsn: str) -> None:
    """A hundred in a row on one connection.

    Answers are never mixed up, and each rider sees what it follows.
    """
    async with linked(livewell_dsn) as link:
        for n in range(100):
            await link.ask(ADD, (str(n),), then=("SELECT count(*)::int FROM public.ridden", ()))
            assert await link.ask(COUNT, (str(n),)) == [(1,)]
        await link.ask(ADD, ("100",), then=(ADD, ("100",)))
        assert await link.ask("SELECT count(DISTINCT x)::int FROM public.ridden WHERE n = $1::int", ("100",)) == [(2,)]
        assert link.riders_failed == 0


async def test_both_ways_of_asking_share_one_connection(livewell_dsn: str) -> None:
    """They wait for the same socket in different ways, and neither makes the other deaf."""
    async with linked(livewell_dsn) as link, asyncio.timeout(5):
        for n in range(20):
            await link.ask(ADD, (str(n),), then=(COUNT, (str(n),)) if n % 3 else None)
            assert await link.call("SELECT count(*)::int FROM public.ridden") == [(n + 1,)]
            assert await link.ask(COUNT, (str(n),)) == [(1,)]
            await asyncio.sleep(0)  # the loop may find the socket readable with nobody waiting


async def test_a_rider_that_fails_is_counted_and_harms_nothing(livewell_dsn: str) -> None:
    """The statement before it is committed, and the connection goes on."""
    async with linked(livewell_dsn) as link:
        await link.ask(ADD, ("1",), then=("SELECT 1 / $1::int", ("0",)))
        assert await link.ask(COUNT, ("1",)) == [(1,)]
        assert await link.call("SELECT count(*) FROM public.ridden") == [(1,)]
        assert link.riders_failed == 1


async def test_a_statement_that_fails_says_so_whatever_rides_behind_it(livewell_dsn: str) -> None:
    """And the next one is answered on a new connection."""
    async with linked(livewell_dsn) as link:
        with pytest.raises(DatabaseError, match="division"):
            await link.ask("SELECT 1 / $1::int", ("0",), then=(COUNT, ("1",)))
        assert await link.ask(COUNT, ("1",)) == [(0,)]


async def test_a_cut_connection_is_replaced_though_a_rider_was_on_it(livewell_dsn: str) -> None:
    """Its answer is lost with it."""
    async with linked(livewell_dsn) as link:
        [(pid,)] = await link.ask("SELECT pg_backend_pid()", (), then=("SELECT 1", ()))
        with psycopg.connect(livewell_dsn, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        with pytest.raises(DatabaseError):
            await link.ask(ADD, ("1",))
            await link.ask(ADD, ("1",))
        assert await link.ask(COUNT, ("7",)) == [(0,)]


async def test_a_single_enqueue_nudges_behind_its_commit_and_then_rests(livewell_dsn: str) -> None:
    """The first nudge rides along; the second waits for the interval, and is sent as ever."""
    settings = Settings(database_url=SecretStr(livewell_dsn), nudge_ms=200)
    app = Livewell(settings)

    @app.task(queue="ridden")
    async def job() -> None: ...

    async with app:
        with psycopg.connect(livewell_dsn, autocommit=True) as listening:
            listening.execute("LISTEN livewell")
            await job.enqueue()
            heard = await asyncio.to_thread(
                lambda: [note.payload for note in listening.notifies(timeout=5, stop_after=1)]
            )
            assert (heard, app.nudger.sent) == (["ridden"], 0)
            await job.enqueue()
            heard = await asyncio.to_thread(
                lambda: [note.payload for note in listening.notifies(timeout=5, stop_after=1)]
            )
            assert heard == ["ridden"]
            await eventually_async(lambda: app.nudger.sent == 1)  # it is heard before its sender is told
