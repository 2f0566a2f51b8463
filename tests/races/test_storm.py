"""Twelve workers that die, freeze and lose answers at random: nothing stuck, no effect twice.

Each worker is a task on its own connection that speaks SQL as the real one does. Time is virtual:
the clock moves when every worker that is awake has sent its heartbeat, so the storm does not depend
on the speed of the machine. Seen to fail when recovery did not look for jobs whose worker is gone
(132 stuck), and for most seeds when reconciling was left out (2 stuck); the fences have their own,
certain tests in test_fence.py.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections import Counter
from enum import Enum

import psycopg

from tests.support.queue_sql import QueueSession

Row = tuple[object, ...]
JOBS = 3000
WORKERS = 12
BATCH = 12
LEASE = 45.0
TICK = 5.0
FAULT_SHARE = 0.2
TICKS_MAX = 3000


class Fault(Enum):
    """What happens to a worker with a batch in its hands."""

    NONE = "none"
    DIES_HOLDING = "dies holding"
    DIES_IN_TRANSACTION = "dies between effect and commit"
    DIES_AFTER_COMMIT = "dies after the commit"
    FREEZES = "freezes past its lease"
    CLAIM_UNANSWERED = "the answer to a claim is lost"
    FINISH_UNANSWERED = "the answer to a finish is lost"


class Storm:
    """The fleet and its clock."""

    def __init__(self, dsn: str, seed: int) -> None:
        self.dsn = dsn
        self.random = random.Random(seed)
        self.tick = 0
        self.moved = asyncio.Condition()
        self.owed: set[int] = set()  # workers that have not yet sent the heartbeat of this tick
        self.over = False
        self.fired: Counter[Fault] = Counter()
        self.fenced = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                group.create_task(self.worker(number))
            group.create_task(self.clock())

    async def clock(self) -> None:
        """Move time whenever all who are awake have renewed; stop when nothing is live."""
        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection:
            while not self.over:
                await connection.execute(f"UPDATE livewell_test.clock SET ahead = ahead + interval '{TICK} seconds'")
                cursor = await connection.execute("SELECT count(*) FROM livewell.job")
                row = await cursor.fetchone()
                async with self.moved:
                    self.tick += 1
                    self.over = row == (0,) or self.tick > TICKS_MAX
                    self.owed = set(range(WORKERS))
                    self.moved.notify_all()
                    await self.moved.wait_for(lambda: not self.owed or self.over)

    async def worker(self, number: int) -> None:
        """One incarnation after the other."""
        while not self.over:
            connection = await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)
            try:
                await Incarnation(self, number, connection).live()
            finally:
                await connection.close()

    async def renewed(self, number: int) -> None:
        """This worker has done its duty for this tick (or cannot)."""
        async with self.moved:
            self.owed.discard(number)
            self.moved.notify_all()

    async def sleep_through(self, number: int, ticks: int) -> None:
        """Be silent while the others live on."""
        wake = self.tick + ticks
        async with self.moved:
            while self.tick < wake and not self.over:
                self.owed.discard(number)
                self.moved.notify_all()
                await self.moved.wait()


class Incarnation:
    """One life of a worker."""

    def __init__(self, storm: Storm, number: int, connection: psycopg.AsyncConnection[Row]) -> None:
        self.storm = storm
        self.number = number
        self.connection = connection
        self.worker = 0
        self.mark = 0
        self.beats = 0

    async def call(self, query: str, *params: object) -> list[Row]:
        cursor = await self.connection.execute(query.encode(), params)
        return await cursor.fetchall()

    async def live(self) -> None:
        rows = await self.call("SELECT livewell.register_worker('storm', 'test', '{work}', '{}', 1, %s)", LEASE)
        self.worker = int(str(rows[0][0]))
        seen = -1
        while not self.storm.over:
            if seen != self.storm.tick:
                seen = self.storm.tick
                if not await self.heartbeat():
                    return
            batch = await self.claim()
            if batch is None:
                return
            if not batch:
                await self.storm.sleep_through(self.number, 1)
                continue
            if not await self.work(batch):
                return

    async def heartbeat(self) -> bool:
        alive, mark, _, _ = (await self.call("SELECT * FROM livewell.renew_worker(%s, '{}', '{}', '{}')", self.worker))[
            0
        ]
        if alive:
            self.beats += 1
            self.mark = int(str(mark))
            # Between batches we know of nothing: whatever the database thinks we hold was never
            # answered.
            await self.call("SELECT livewell.reconcile_jobs(%s, '{}', %s)", self.worker, self.mark)
            await self.call("SELECT * FROM livewell.maintain(%s, 1, 10)", self.worker)
        await self.storm.renewed(self.number)
        return bool(alive)

    async def claim(self) -> list[tuple[int, int]] | None:
        rows = await self.call(
            "SELECT answer, id, fence FROM livewell.claim_jobs(%s, '{work}', %s, true)", self.worker, BATCH
        )
        if rows and rows[0][0] == "buried":
            return None
        if rows and self.roll() is Fault.CLAIM_UNANSWERED:
            self.storm.fired[Fault.CLAIM_UNANSWERED] += 1
            return []
        return [(int(str(job)), int(str(fence))) for _, job, fence in rows]

    def roll(self) -> Fault:
        if self.storm.random.random() >= FAULT_SHARE:
            return Fault.NONE
        return self.storm.random.choice([fault for fault in Fault if fault is not Fault.NONE])

    async def work(self, batch: list[tuple[int, int]]) -> bool:
        """Write the effect and the end of the batch in one transaction.

        False when this life is over.
        """
        fault = self.roll()
        if fault is Fault.CLAIM_UNANSWERED:
            fault = Fault.NONE
        self.storm.fired[fault] += 1
        if fault is Fault.DIES_HOLDING:
            return False
        if fault is Fault.FREEZES:
            await self.storm.sleep_through(self.number, int(3 * LEASE / TICK))
        await self.connection.execute("BEGIN")
        ids, fences = [job for job, _ in batch], [fence for _, fence in batch]
        await self.connection.execute(
            "INSERT INTO effect SELECT * FROM unnest(%s::bigint[], %s::bigint[])", (ids, fences)
        )
        if fault is Fault.DIES_IN_TRANSACTION:
            return False
        fenced = await self.call("SELECT * FROM livewell.finish_jobs(%s, %s, %s)", self.worker, ids, fences)
        self.storm.fenced += len(fenced)
        await self.connection.execute("ROLLBACK" if fenced else "COMMIT")
        if fault is Fault.FINISH_UNANSWERED and not fenced:
            # Sent once more, as after a lost answer: everything is fenced, and nothing is written.
            again = await self.call("SELECT * FROM livewell.finish_jobs(%s, %s, %s)", self.worker, ids, fences)
            assert len(again) == len(batch)
        if fenced and len(fenced) < len(batch):
            await self.hand_back(batch, {int(str(row[0])) for row in fenced})
        return fault is not Fault.DIES_AFTER_COMMIT

    async def hand_back(self, batch: list[tuple[int, int]], fenced: set[int]) -> None:
        """Part of the batch was not ours any more, so nothing was written.

        Give back the part that is.
        """
        rest = ",".join(
            f'{{"id": {job}, "fence": {fence}, "outcome": "released"}}' for job, fence in batch if job not in fenced
        )
        await self.call("SELECT * FROM livewell.finish_jobs(%s, '{}', '{}', %s::jsonb)", self.worker, f"[{rest}]")


async def test_twelve_workers_in_a_storm_lose_nothing_and_do_nothing_twice(queue: QueueSession, queue_dsn: str) -> None:
    """Every job's effect is there exactly once, and no job is left."""
    seed = int(os.environ.get("LIVEWELL_TEST_SEED", secrets.randbelow(2**32)))
    print(f"storm: LIVEWELL_TEST_SEED={seed}")
    queue.freeze()
    queue.rows("CREATE TABLE IF NOT EXISTS effect (job bigint NOT NULL, fence bigint NOT NULL)")
    queue.rows("TRUNCATE effect")
    queue.rows("UPDATE livewell.queue SET lost_max = 100")
    jobs = queue.enqueue(JOBS)
    storm = Storm(queue_dsn, seed)

    await asyncio.wait_for(storm.run(), 120)

    effects = Counter(queue.column("SELECT job FROM effect"))
    print(f"storm: {storm.tick} ticks, {storm.fenced} fenced, faults {dict(storm.fired)}")
    assert queue.rows("SELECT id, state FROM livewell.job") == []
    assert [job for job, times in effects.items() if times > 1] == []
    assert sorted(effects) == sorted(jobs)
    assert queue.rows("SELECT outcome::text, count(*) FROM livewell.job_history GROUP BY 1") == [("succeeded", JOBS)]
    # The run that wrote the effect is the run that history says has ended the job.
    assert (
        queue.rows(
            "SELECT job, e.fence, h.fence FROM effect e JOIN livewell.job_history h ON h.id = job WHERE e.fence "
            "<> h.fence"
        )
        == []
    )
    assert set(Fault) == set(storm.fired), "a fault that never fired proves nothing"
    assert storm.fenced > 0
