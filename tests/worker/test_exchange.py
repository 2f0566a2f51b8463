"""The exchange overlaps: the next call is sent before the last answer is taken in. The keeper may look at any moment between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from livewell import Livewell, Settings, Task
from livewell.queue.worker.exchange import Exchange
from livewell.queue.worker.holding import Holding, Snapshot
from livewell.testing.processes import eventually_async
from tests.worker.bench import Bench, Open

JOBS = 3000
Count = Task[[int], Coroutine[Any, Any, None]]


async def drain_while_looked_at(bench: Bench, count: Count, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Drain JOBS jobs; at every answer that is not yet taken in, do what a reconciling keeper does. Answers looks and jobs handed back."""
    handed_back = looks = 0
    looking: set[asyncio.Task[None]] = set()
    holdings: list[Holding] = []
    take_in = Exchange._take_in

    async def reconcile(seen: Snapshot) -> None:
        nonlocal handed_back
        query = "SELECT livewell.reconcile_jobs(%s, %s::bigint[], %s)"
        handed_back += (await bench.app.database.call(query, (seen.worker, seen.known_fences, seen.mark)))[0][0]

    def looked_at(exchange: Exchange) -> None:
        nonlocal looks
        if exchange._answer is not None and exchange._holding.claim_mark is not None:
            looks += 1
            task = asyncio.create_task(reconcile(holdings[0].snapshot()))
            looking.add(task)
            task.add_done_callback(looking.discard)
        take_in(exchange)

    monkeypatch.setattr(Exchange, "_take_in", looked_at)
    async with bench.working(slots=20) as worker:
        holdings.append(worker.holding)
        await count.enqueue_many([{"n": n} for n in range(JOBS)])
        await eventually_async(lambda: worker.finished >= JOBS and not worker.holding.all, timeout=30)
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


async def test_with_a_mark_that_runs_ahead_it_breaks(
    bench: Bench, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken on purpose: the mark of the call in flight counts the fences of the answer that nobody has taken in."""
    snapshot = Holding.snapshot

    def ahead(holding: Holding) -> Snapshot:
        seen = snapshot(holding)
        return Snapshot(
            worker=seen.worker,
            started_ids=seen.started_ids,
            started_fences=seen.started_fences,
            timeouts_seconds=seen.timeouts_seconds,
            known_fences=seen.known_fences,
            mark=seen.mark + 16384,
        )

    monkeypatch.setattr(Holding, "snapshot", ahead)
    _, handed_back = await drain_while_looked_at(bench, count, monkeypatch)

    assert handed_back > 0
