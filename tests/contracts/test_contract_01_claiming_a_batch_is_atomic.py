"""Contract 1: claiming a batch is atomic.

Broken once, and kept broken below: without FOR UPDATE SKIP LOCKED two workers get the same jobs in
4 of 6 orders. With the lock taken but not skipped, claims wait for each other.
"""

from __future__ import annotations

import asyncio

import psycopg

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

CLAIM = "SELECT id, fence FROM livewell.claim_jobs(%({})s, '{{work}}', 2, false)"
LOCK = "LIMIT v_limit - cardinality(v_found) FOR UPDATE SKIP LOCKED"


async def claims_side_by_side(queue: QueueSession, queue_dsn: str, names: str = "abc") -> list[str]:
    """Workers that claim two each, of five."""

    def prepare() -> Given:
        queue.reset()
        return {name: queue.register() for name in names} | {"ids": queue.enqueue(5)}

    def judge(outcome: Outcome) -> str | None:
        rows = [(name, *row) for name in names for row in outcome.answer(name)]
        if outcome.errors or outcome.waited:
            return f"errors: {outcome.errors}, waited: {outcome.waited}"
        if len({row[1] for row in rows}) != len(rows) or len({row[2] for row in rows}) != len(rows):
            return f"a job or a fence was handed out twice: {rows}"
        if len(rows) != min(5, 2 * len(names)):
            return f"{len(rows)} jobs were claimed"
        owners = queue.rows("SELECT worker, id, fence FROM livewell.job WHERE state = 'running'")
        expected = sorted((outcome.given[name], job, fence) for name, job, fence in rows)
        return None if sorted(owners) == expected else f"claimed {expected}, but the table says {owners}"

    return await violations(
        queue_dsn, [session(name, CLAIM.format(name)) for name in names], prepare=prepare, judge=judge
    )


async def test_no_job_is_claimed_twice_and_nobody_waits(queue: QueueSession, queue_dsn: str) -> None:
    """Three workers, all ninety orders."""
    assert await claims_side_by_side(queue, queue_dsn) == []


async def test_without_the_lock_two_workers_get_the_same_job(queue: QueueSession, queue_dsn: str) -> None:
    """Broken on purpose: the jobs are picked without FOR UPDATE."""
    with variant(queue_dsn, "claim_jobs", (LOCK, "LIMIT v_limit - cardinality(v_found)")):
        assert await claims_side_by_side(queue, queue_dsn, "ab") != []


async def test_without_skipping_the_locked_claims_wait_for_each_other(queue: QueueSession, queue_dsn: str) -> None:
    """Broken on purpose: the second worker waits for the first one's commit."""
    with variant(queue_dsn, "claim_jobs", (LOCK, "LIMIT v_limit - cardinality(v_found) FOR UPDATE")):
        assert [line for line in await claims_side_by_side(queue, queue_dsn, "ab") if "waited: {" in line] != []


def test_a_claim_that_does_not_commit_has_claimed_nothing(queue: QueueSession, other: QueueSession) -> None:
    """All of the batch or none of it."""
    jobs = queue.enqueue(3)
    worker = queue.register()
    with queue.connection.transaction(force_rollback=True):
        assert len(queue.claim(worker)) == 3
        assert other.states(jobs) == ["ready"] * 3

    assert other.states(jobs) == ["ready"] * 3


async def test_eight_connections_drain_a_queue_without_a_double_claim(queue: QueueSession, queue_dsn: str) -> None:
    """Truly at the same time, as a sample: two thousand jobs, each claimed once."""
    jobs = queue.enqueue(2000)
    workers = [queue.register() for _ in range(8)]

    async def drain(worker: int) -> list[int]:
        got: list[int] = []
        async with await psycopg.AsyncConnection.connect(queue_dsn, autocommit=True) as connection:
            while True:
                cursor = await connection.execute("SELECT id FROM livewell.claim_jobs(%s, '{work}', 17)", (worker,))
                rows = await cursor.fetchall()
                if not rows:
                    return got
                got.extend(row[0] for row in rows)

    claimed = [job for batch in await asyncio.gather(*map(drain, workers)) for job in batch]

    assert sorted(claimed) == sorted(jobs)
