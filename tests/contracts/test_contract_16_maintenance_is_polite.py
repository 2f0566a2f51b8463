"""Contract 16: maintenance waits at most 100 ms for a lock, then gives up and tries later.

Broken once, and kept broken below: without the lock_timeout a reader of an old partition makes the
drop wait, and everybody who wants to finish a job stands behind it for as long as the reader reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from livewell.testing.processes import eventually_async
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

OLD = "job_history_20000101"
MILLISECONDS_MAX = 100

# Functions that need more than a row lock: they build and run a statement of their own. Not the two
# that read and write rows of one type's table, nor those that only ask functions of ours by name
# (rules, states).
IMPOLITE = """
SELECT proname FROM pg_proc
WHERE pronamespace = 'livewell'::regnamespace AND proname NOT IN ('read_values', 'write_values', 'evaluate_rule', 'system_state', 'find_jobs', 'list_acts') AND prosrc ~* '\\mEXECUTE\\s+(format|''|v_)'
  AND NOT EXISTS (
    SELECT FROM unnest(proconfig) AS setting
    WHERE setting LIKE 'lock_timeout=%%' AND split_part(setting, '=', 2)::interval BETWEEN '1 ms' AND '100 ms')
"""


def old_partition(queue: QueueSession) -> None:
    queue.rows(f"CREATE TABLE livewell.{OLD} (LIKE livewell.job_history INCLUDING DEFAULTS)")
    queue.rows(
        f"ALTER TABLE livewell.job_history ATTACH PARTITION livewell.{OLD} FOR VALUES FROM ('2000-01-01Z') TO "
        "('2000-01-02Z')"
    )
    queue.rows(f"ALTER TABLE livewell.{OLD} OWNER TO livewell_owner")


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def reader(dsn: str, relation: str) -> AsyncIterator[None]:
    """Somebody in a long transaction who has read this relation."""
    async with connected(dsn) as connection, connection.transaction():
        await connection.execute(f"SELECT count(*) FROM livewell.{relation}".encode())
        yield


def test_every_function_that_changes_tables_has_a_short_lock_timeout(queue: QueueSession) -> None:
    """Read from the catalog, so a new one cannot forget it."""
    assert queue.column(IMPOLITE) == []


def test_a_function_without_it_is_named(queue: QueueSession) -> None:
    """The rule above can fail."""
    with queue.connection.transaction(force_rollback=True):
        queue.rows("ALTER FUNCTION livewell.drop_history_day RESET lock_timeout")
        queue.rows("ALTER FUNCTION livewell.ensure_history_days SET lock_timeout = '1s'")

        assert sorted(queue.column(IMPOLITE)) == ["drop_history_day", "ensure_history_days"]


@pytest.mark.parametrize("relation", [OLD, "job_history"], ids=["the partition", "the whole history"])
async def test_a_reader_makes_the_drop_give_up_and_nobody_waits_for_the_reader(
    livewell_dsn: str, relation: str
) -> None:
    """The drop answers 55P03 and a job is finished, both while the reader is still reading."""
    with QueueSession(livewell_dsn) as queue:
        queue.declare()
        old_partition(queue)
        queue.enqueue()
        held = queue.claim(queue.register())[0]
        async with (
            reader(livewell_dsn, relation),
            connected(livewell_dsn) as dropper,
            connected(livewell_dsn) as worker,
        ):
            drop = asyncio.create_task(dropper.execute("SELECT livewell.drop_history_day(7)"))
            finish = "SELECT * FROM livewell.finish_jobs(%s, %s, %s)"
            fenced = await (await worker.execute(finish, (held.worker, [held.id], [held.fence]))).fetchall()
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await drop

        assert fenced == []
        assert queue.state(held.id) == "succeeded"
        assert queue.value("SELECT livewell.drop_history_day(7)") == OLD


async def test_without_the_lock_timeout_a_finish_waits_for_the_reader(livewell_dsn: str) -> None:
    """Broken on purpose: reader ◀ drop ◀ finish, until the reader leaves."""
    with QueueSession(livewell_dsn) as queue:
        queue.declare()
        old_partition(queue)
        queue.enqueue()
        held = queue.claim(queue.register())[0]
        with variant(livewell_dsn, "drop_history_day", ("SET lock_timeout = '100ms'", "SET lock_timeout = '60s'")):
            async with connected(livewell_dsn) as dropper, connected(livewell_dsn) as worker:

                async def waits(waiter: psycopg.AsyncConnection[Any]) -> bool:
                    pid = waiter.info.backend_pid
                    return bool(queue.value("SELECT cardinality(pg_blocking_pids(%s)) > 0", pid))

                async with reader(livewell_dsn, "job_history"):
                    drop = asyncio.create_task(dropper.execute("SELECT livewell.drop_history_day(7)"))
                    await eventually_async(lambda: waits(dropper))
                    finish = asyncio.create_task(
                        worker.execute(
                            "SELECT * FROM livewell.finish_jobs(%s, %s, %s)", (held.worker, [held.id], [held.fence])
                        )
                    )
                    await eventually_async(lambda: waits(worker))
                await asyncio.gather(drop, finish)


async def test_making_the_coming_days_holds_up_nobody(livewell_dsn: str) -> None:
    """While its transaction is open jobs finish, and while a finish is open days are made."""
    with QueueSession(livewell_dsn) as queue, QueueSession(livewell_dsn) as keeper:
        queue.declare()
        queue.enqueue(2)
        first, second = queue.claim(queue.register())
        queue.rows("SET lock_timeout = '5s'")
        with keeper.connection.transaction():
            assert keeper.value("SELECT livewell.ensure_history_days(20)") > 0
            assert queue.finish(first) == []
        with queue.connection.transaction():
            assert queue.finish(second) == []
            assert keeper.value("SELECT livewell.ensure_history_days(25)") > 0
