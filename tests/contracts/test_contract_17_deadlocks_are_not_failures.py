"""Contract 17: a deadlock or serialisation failure is not the job's fault (R17).

Broken once, and kept broken below: with 40P01 taken out of the list of conflicts the handler's
deadlock counts as a failed attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import psycopg
import pytest

from livewell import Livewell, Settings
from livewell.db.link import Link, Statement, Unread
from livewell.errors import DatabaseConflict
from livewell.model import Answer, Enqueued, Failed, Released, Succeeded
from livewell.queue import run
from livewell.testing import InlineWorker, Ran, opened
from livewell.testing.processes import eventually_async
from tests.support.queue_sql import QueueSession


class Bank:
    """Two rows, and a task that locks both in the order it is told.

    Two of them meet in the middle, the first time.
    """

    def __init__(self) -> None:
        self.app = Livewell(Settings())
        self.met = asyncio.Barrier(2)
        self.meetings = 2

        @self.app.task(queue="bank", name="move")
        async def move(first: int, second: int) -> None:
            async with self.app.transaction() as tx:
                await tx.execute("SET LOCAL deadlock_timeout = '50ms'")
                await tx.execute("UPDATE account SET n = n + 1 WHERE id = %s", (first,))
                if self.meetings > 0:
                    self.meetings -= 1
                    await self.met.wait()
                await tx.execute("UPDATE account SET n = n + 1 WHERE id = %s", (second,))

        self.move = move


@asynccontextmanager
async def bank_on(settings: Settings) -> AsyncIterator[Bank]:
    bank = Bank()
    async with opened(bank.app, settings):
        async with bank.app.transaction() as tx:
            await tx.execute("CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL)")
            await tx.execute("INSERT INTO account VALUES (1, 0), (2, 0)")
        await bank.move.enqueue(first=1, second=2)
        await bank.move.enqueue(first=2, second=1)
        yield bank


async def run_both(bank: Bank) -> list[Ran]:
    """Both jobs at once, on two inline workers."""
    ran = await asyncio.gather(*(InlineWorker(bank.app).run(limit=1) for _ in range(2)))
    return [one for runs in ran for one in runs]


async def test_a_deadlock_in_a_handler_gives_the_attempt_back(livewell_settings: Settings) -> None:
    """One of two jobs is Postgres's victim: released, attempt 0, nothing lost.

    Run again, it succeeds with attempt 1.
    """
    async with bank_on(livewell_settings) as bank:
        ran = await run_both(bank)
        victim = next(one for one in ran if isinstance(one.outcome, Released))
        other = next(one for one in ran if one is not victim)
        record = await bank.app.admin.job(victim.job_id)

        assert other.outcome == Succeeded()
        assert (record["attempt"], record["lost"], record["state"] in ("ready", "delayed")) == (0, 0, True)
        assert "deadlock" in record["error"]

        await bank.app.admin.retry(victim.job_id)
        assert [(one.attempt, one.outcome) for one in await InlineWorker(bank.app).run()] == [(1, Succeeded())]
        rows = await bank.app.database.call("SELECT n FROM account ORDER BY id")
        assert rows == [(2,), (2,)]


async def test_without_the_conflict_states_it_counts_as_an_attempt(
    livewell_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken on purpose: the deadlock is taken for an error of the handler."""
    monkeypatch.setattr(run, "_CONFLICTS", ())
    async with bank_on(livewell_settings) as bank:
        ran = await run_both(bank)
        victim = next(one for one in ran if isinstance(one.outcome, Failed))

        assert (await bank.app.admin.job(victim.job_id))["attempt"] == 1


@pytest.mark.parametrize("state", ["40P01", "40001"])
async def test_a_conflict_raised_by_another_driver_counts_too(livewell_settings: Settings, state: str) -> None:
    """Whatever carries the SQLSTATE, also wrapped in an exception of the handler's own."""
    app = Livewell(Settings())

    class Theirs(Exception):
        sqlstate = state

    @app.task(queue="bank")
    async def wrapped() -> None:
        try:
            raise Theirs("conflict")
        except Theirs as error:
            raise RuntimeError("could not save") from error

    async with opened(app, livewell_settings):
        job = (await wrapped.enqueue()).id
        ran = await InlineWorker(app).run(limit=1)

        assert isinstance(ran[0].outcome, Released)
        assert (await app.admin.job(job))["attempt"] == 0


async def test_an_enqueue_that_deadlocks_is_tried_again(livewell_settings: Settings, livewell_dsn: str) -> None:
    """A stranger's transaction takes our two keys the other way round.

    The caller sees only the answer.
    """
    app = Livewell(Settings())

    @app.task(queue="work", name="task")
    async def task() -> None:
        """Does nothing."""

    async with opened(app, livewell_settings):
        with QueueSession(livewell_dsn) as stranger:
            ours: list[int] = []
            stranger.rows("SET deadlock_timeout = '60s'")  # so that the victim is the other one
            stranger.rows("BEGIN")
            last = stranger.enqueue(unique_key="b")[0]

            async def many() -> list[Enqueued]:
                # enqueue_many gives one key to all; two keys in one call need the requests
                # themselves.
                requests = [task.options(unique_key=key).request({}) for key in ("a", "b")]
                return await app._submit(requests, None)

            async def waiting() -> bool:
                found = stranger.column("SELECT pid FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", me)
                ours[:] = found
                return bool(found)

            me = stranger.value("SELECT pg_backend_pid()")
            enqueueing = asyncio.create_task(many())
            await eventually_async(waiting)
            first = await asyncio.to_thread(stranger.enqueue, unique_key="a")
            stranger.rows("COMMIT")

            assert await enqueueing == [Enqueued(Answer.MERGED, first[0]), Enqueued(Answer.MERGED, last)]


async def test_a_result_whose_exchange_deadlocks_is_sent_again_and_the_job_is_not(
    livewell_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler ran once, the job succeeded at its first attempt."""
    app = Livewell(Settings())
    runs: list[int] = []
    conflicts: list[str] = []

    @app.task(queue="work")
    async def count() -> None:
        runs.append(1)

    async with opened(app, livewell_settings):
        real = Link.ask_unread

        async def sometimes(
            link: Link, query: str, params: Sequence[str | None], *, then: Statement | None = None
        ) -> Unread:
            if "exchange_jobs" in query and params[1] != "{}" and len(conflicts) < 3:
                conflicts.append(query)
                raise DatabaseConflict("call: deadlock detected", sqlstate="40P01")
            return await real(link, query, params, then=then)

        monkeypatch.setattr(Link, "ask_unread", sometimes)
        job = (await count.enqueue()).id
        worker = app.worker(slots=2)
        working = asyncio.create_task(worker.run())

        async def over() -> bool:
            return bool((await app.admin.job(job))["state"] == "succeeded")

        await eventually_async(over)
        worker.stop()
        await working

        assert (len(conflicts), len(runs)) == (3, 1)
        assert (await app.admin.job(job))["attempt"] == 1


def test_a_real_deadlock_has_the_state_we_look_for(livewell_dsn: str) -> None:
    """40P01 is what Postgres says; nothing here depends on the wording."""
    assert psycopg.errors.DeadlockDetected.sqlstate in run._CONFLICTS
    assert psycopg.errors.SerializationFailure.sqlstate in run._CONFLICTS
