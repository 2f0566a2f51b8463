"""The exchange overlaps: the next call is sent before the last answer is taken in.

The keeper may look at any moment between.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from livewell import Livewell, Settings, Task
from livewell.queue.worker.claim_ahead import ClaimAhead
from livewell.queue.worker.holding import Holding, Snapshot
from livewell.queue.worker.keeper import Renewed
from livewell.queue.worker.pace import Pace
from livewell.queue.worker.worker import Worker
from livewell.testing.processes import eventually_async
from tests.integration.queue.bench import Bench, Open
from tests.support.queue_sql import FENCES

JOBS = 3000
Count = Task[[int], Coroutine[Any, Any, None]]


async def drain_while_looked_at(bench: Bench, count: Count, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Drain JOBS jobs.

    Whenever an answer waits to be taken in, the keeper hears how far the fences have come, looks,
    and reconciles. Answers looks and jobs handed back.
    """
    handed_back = looks = 0
    looking: set[asyncio.Task[None]] = set()
    workers: list[Worker] = []
    take_in_later = ClaimAhead._take_in_later

    async def reconcile(seen: Snapshot) -> None:
        nonlocal handed_back
        query = "SELECT livewell.reconcile_jobs(%s, %s::bigint[], %s)"
        handed_back += (await bench.app.database.call(query, (seen.worker, seen.known_fences, seen.mark)))[0][0]

    def looked_at(exchange: ClaimAhead) -> None:
        nonlocal looks
        if exchange._answer is not None:
            (worker,) = workers
            newest = max(row[2] for row in exchange._answer.claimed)
            heard = Renewed(worker.holding.snapshot(), True, newest | (FENCES - 1), [], False, 0)
            worker._on_renewed(heard)
            looks += 1
            task = asyncio.create_task(reconcile(worker.holding.snapshot()))
            looking.add(task)
            task.add_done_callback(looking.discard)
        take_in_later(exchange)

    monkeypatch.setattr(ClaimAhead, "_take_in_later", looked_at)
    async with bench.working(slots=20) as worker:
        workers.append(worker)
        await count.enqueue_many([{"n": n} for n in range(JOBS)])
        await eventually_async(lambda: worker.finished >= JOBS and not worker.holding.all, timeout=120)
        while looking:
            await asyncio.gather(*looking)
    return looks, handed_back


@pytest.fixture
def runs() -> Counter[int]:
    return Counter()


@pytest.fixture
def app() -> Livewell:
    return Livewell(Settings())


@pytest.fixture
def count(app: Livewell, runs: Counter[int]) -> Count:
    @app.task()
    async def count(n: int) -> None:
        runs[n] += 1

    return count


@pytest.fixture
async def bench(app: Livewell, count: Count, open_app: Open) -> Bench:
    del count  # declared before the app is opened
    return await open_app(app)


async def test_what_is_not_yet_taken_in_is_not_handed_back(
    bench: Bench, count: Count, runs: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the keeper looks, every fence up to its mark is one we know of."""
    looks, handed_back = await drain_while_looked_at(bench, count, monkeypatch)

    assert looks > 0, "no answer was ever taken in during a call: nothing was tested"
    assert handed_back == 0
    assert set(runs.values()) == {1}
    assert len(runs) == JOBS


async def test_without_a_mark_for_what_is_not_taken_in_it_breaks(
    bench: Bench, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken on purpose: as if nothing were on its way."""

    def ahead(holding: Holding) -> Snapshot:
        holding.mark, holding.claim_mark = max(holding.mark, holding.claim_mark or 0) + FENCES, None
        return snapshot(holding)

    snapshot = Holding.snapshot
    monkeypatch.setattr(Holding, "snapshot", ahead)
    _, handed_back = await drain_while_looked_at(bench, count, monkeypatch)

    assert handed_back > 0


async def test_an_answer_that_cannot_be_taken_in_ends_the_worker(
    bench: Bench, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an answer is none: the event loop would only log it, and the worker would live on without working."""

    worker = bench.app.worker()
    running = asyncio.create_task(worker.run())
    take_in = ClaimAhead._take_in

    def sometimes(exchange: ClaimAhead) -> None:
        if exchange._answer is not None and exchange._holding.claim_mark is not None:
            raise MemoryError
        take_in(exchange)

    monkeypatch.setattr(ClaimAhead, "_take_in", sometimes)
    await count.enqueue_many([{"n": n} for n in range(JOBS)])
    with pytest.raises(MemoryError):
        await asyncio.wait_for(running, 20)


async def test_what_arrives_after_a_stop_is_handed_back_unstarted(
    bench: Bench, count: Count, runs: Counter[int]
) -> None:
    """A claim was under way when the worker was told to stop.

    Its jobs are somebody else's, at once and without an attempt.
    """
    worker = bench.app.worker()
    running = asyncio.create_task(worker.run())
    await worker.started.wait()
    await count.enqueue_many([{"n": n} for n in range(JOBS)])
    await eventually_async(lambda: worker.finished > 200, timeout=20)
    worker.stop()
    await running

    left = await bench.scalar("SELECT count(*) FROM livewell.job WHERE state = 'ready' AND attempt = 0 AND lost = 0")
    assert left + len(runs) == JOBS
    assert set(runs.values()) == {1}


async def test_a_claim_is_for_half_of_the_places(
    bench: Bench, count: Count, runs: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other half runs meanwhile.

    While all were claimed at once, the worker and the database took turns, and the first six
    thousand of 20,000 jobs took twice as long.
    """
    wanted: list[int] = []
    exchange = ClaimAhead.exchange

    async def noted(self: ClaimAhead, n: int) -> None:
        wanted.append(n)
        await exchange(self, n)

    monkeypatch.setattr(ClaimAhead, "exchange", noted)
    monkeypatch.setattr(Pace, "ahead", lambda *_: 1000)
    await count.enqueue_many([{"n": n} for n in range(JOBS)])
    async with bench.working(slots=20) as worker:
        await eventually_async(lambda: worker.finished >= JOBS, timeout=120)
    assert max(wanted) == 510
    assert set(runs.values()) == {1}
