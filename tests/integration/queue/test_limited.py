"""Limited queues with a real worker.

Concurrency, groups, rate, shared calls, permits, credentials.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress

import pytest
from pydantic import BaseModel

from livewell import Blame, Breaker, Job, JobState, Livewell, Release, Retry, Settings
from livewell.errors import ConfigurationError, DatabaseUnavailable, InvalidOption, PermitRefused, UnknownLimiter
from livewell.testing.processes import eventually_async
from tests.integration.queue.bench import Open


@pytest.fixture
def app() -> Livewell:
    return Livewell(Settings())


class Gauge:
    """How many are inside, and the most there ever were."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def pass_through(self, key: str, seconds: float = 0.02) -> None:
        self.inside[key] += 1
        self.most[key] = max(self.most[key], self.inside[key])
        await asyncio.sleep(seconds)
        self.inside[key] -= 1


async def test_a_queue_limit_holds_and_everything_is_done(app: Livewell, open_app: Open) -> None:
    """Twenty jobs, two at a time, ten slots."""
    gauge = Gauge()
    app.queue("few", concurrency=2)

    @app.task(queue="few")
    async def work(n: int) -> None:
        del n
        await gauge.pass_through("all")

    bench = await open_app(app)
    jobs = await work.enqueue_many([{"n": n} for n in range(20)])
    async with bench.working():
        for job in jobs:
            await bench.until(job.id, JobState.SUCCEEDED)
    assert gauge.most["all"] == 2


async def test_a_group_limit_holds_for_each_group(app: Livewell, open_app: Open) -> None:
    """Per-user limits: two users, three each, side by side."""
    gauge = Gauge()
    app.queue("exports", group_limit=3)

    @app.task(queue="exports")
    async def export(user: str) -> None:
        await gauge.pass_through(user, 0.05)

    bench = await open_app(app)
    jobs = await export.enqueue_many([{"user": user} for user in ["ann", "bob"] * 10], group=lambda a: a["user"])
    async with bench.working():
        for job in jobs:
            await bench.until(job.id, JobState.SUCCEEDED)
    assert gauge.most == {"ann": 3, "bob": 3}


async def test_ordinary_and_limited_queues_run_side_by_side(app: Livewell, open_app: Open) -> None:
    """Ten slots full of slow calls do not keep an ordinary queue waiting."""
    started = asyncio.Semaphore(0)
    app.queue("slow", concurrency=100)

    @app.task(queue="slow")
    async def slow(n: int) -> None:
        del n
        started.release()
        await asyncio.sleep(30)

    @app.task()
    async def quick() -> None:
        pass

    bench = await open_app(app)
    await slow.enqueue_many([{"n": n} for n in range(20)])
    async with bench.working(slots=10) as worker:
        for _ in range(10):
            await asyncio.wait_for(started.acquire(), 10)
        job = await quick.enqueue()
        await bench.until(job.id, JobState.SUCCEEDED)
        worker.stop()
        worker.stop()


async def test_a_rate_is_kept_and_used(app: Livewell, open_app: Open) -> None:
    """Twenty a second in bursts of five: never more than twenty in any second."""
    calls: list[float] = []
    app.limiter("api", rate="20/s", burst=5, reserve=0, permit=0.05)
    app.queue("calls", limiter="api")

    @app.task(queue="calls")
    async def call(job: Job, n: int) -> None:
        del n
        job.spend_permit()
        calls.append(time.monotonic())

    bench = await open_app(app)
    jobs = await call.options(lane=0).enqueue_many([{"n": n} for n in range(60)])
    async with bench.working():
        for job in jobs:
            await bench.until(job.id, JobState.SUCCEEDED)
    assert len(calls) == 60
    assert max(sum(at <= other < at + 1 for other in calls) for at in calls) <= 20


class Quote(BaseModel):
    """What one job asks for."""

    symbol: str


async def test_jobs_share_a_call_and_each_has_its_outcome(app: Livewell, open_app: Open) -> None:
    """Five symbols, one call; one of them is refused alone."""
    sizes: list[int] = []
    app.limiter("api", rate="100/s", budget="1000 calls/day")
    app.queue("quotes", limiter="api", attempts=1)

    @app.task(queue="quotes", batch=50)
    async def refresh(quotes: list[Quote], jobs: list[Job]) -> list[Exception | None]:
        sizes.append(len(quotes))
        assert [job.credential for job in jobs] == [None] * len(quotes)
        return [ValueError("no such symbol") if quote.symbol == "???" else None for quote in quotes]

    bench = await open_app(app)
    symbols = ["AAPL", "MSFT", "???", "NVDA", "TSLA"]
    jobs = await refresh.enqueue_many([{"symbol": s} for s in symbols], unique_key=lambda a: a["symbol"])
    async with bench.working():
        for job, symbol in zip(jobs, symbols, strict=True):
            await bench.until(job.id, JobState.FAILED if symbol == "???" else JobState.SUCCEEDED)
    assert sizes == [5]
    assert await bench.scalar("SELECT sum(units) FROM livewell.limiter_usage") == 1


async def test_a_batch_task_needs_no_limiter(app: Livewell, open_app: Open) -> None:
    """In an ordinary queue it also takes a list; a payload that no longer fits is refused alone."""
    seen: list[str] = []

    @app.task(batch=10, attempts=1)
    async def refresh(quotes: list[Quote]) -> None:
        seen.extend(quote.symbol for quote in quotes)

    bench = await open_app(app)
    jobs = await refresh.enqueue_many([{"symbol": "A"}, {"symbol": "B"}])
    await bench.app.database.call("UPDATE livewell.job SET payload = '{}' WHERE id = %s", (jobs[1].id,))
    async with bench.working():
        await bench.until(jobs[0].id, JobState.SUCCEEDED)
        dead = await bench.until(jobs[1].id, JobState.FAILED)
    assert (seen, dead["reason"]) == (["A"], "payload")


async def test_more_permits_inside_a_job(app: Livewell, open_app: Open) -> None:
    """Three pages, three permits; more than can ever go at once is refused and not waited for."""
    refused: list[str] = []
    app.limiter("api", rate="50/s", burst=5, reserve=0, permit=10)
    app.queue("pages", limiter="api")

    @app.task(queue="pages")
    async def crawl(job: Job) -> None:
        for _ in range(2):
            await job.permit()
            job.spend_permit()
        try:
            await job.permit(6)
        except PermitRefused as error:
            refused.append(str(error))

    bench = await open_app(app)
    job = await crawl.enqueue()
    async with bench.working():
        await bench.until(job.id, JobState.SUCCEEDED)
    assert await bench.scalar("SELECT sum(calls) FROM livewell.limiter_grant") == 3
    assert "never lets more than 5 go at once" in refused[0]


async def test_credentials_come_with_the_claim(app: Livewell, open_app: Open) -> None:
    """Both are used."""
    seen: set[str | None] = set()
    app.limiter("api", rate="4/min", burst=2, reserve=0, credentials=["one", "two"])
    app.queue("calls", limiter="api")

    @app.task(queue="calls")
    async def call(job: Job, n: int) -> None:
        del n
        seen.add(job.credential)

    bench = await open_app(app)
    jobs = await call.enqueue_many([{"n": n} for n in range(4)])
    async with bench.working():
        for job in jobs:
            await bench.until(job.id, JobState.SUCCEEDED)
    assert seen == {"one", "two"}


async def test_the_upstreams_failures_open_the_breaker_and_burn_no_attempts(app: Livewell, open_app: Open) -> None:
    """Two failures in a row: what waits is not even claimed."""
    calls: list[int] = []
    app.limiter("api", breaker=Breaker(in_row=2))
    app.queue("calls", limiter="api", concurrency=1)

    @app.task(queue="calls")
    async def call(n: int) -> None:
        calls.append(n)
        raise Retry("503", after="1h", blame=Blame.UPSTREAM)

    bench = await open_app(app)
    jobs = await call.enqueue_many([{"n": n} for n in range(5)])
    async with bench.working():
        for job in jobs[:2]:
            await bench.until(job.id, JobState.DELAYED)
        assert await bench.scalar("SELECT breaker FROM livewell.limiter_credential") == "open"
        await asyncio.sleep(0.3)  # nothing may happen, and there is nothing to wait for
    assert calls == [0, 1]
    assert [(await bench.app.admin.job(job.id))["attempt"] for job in jobs[2:]] == [0, 0, 0]


@pytest.mark.parametrize("rate", ["20/s", None])
async def test_a_permit_that_came_too_late_is_burnt_and_the_job_goes_back(
    app: Livewell, open_app: Open, rate: str | None
) -> None:
    """The handler dawdled: nobody is called, no attempt is counted, and the next permit does it.

    Without a rate too: meanwhile the upstream may have asked for silence. A refresh that had waited
    for a database that was away called 1.8 s into a silence of 8 s (F-D21).
    """
    runs: list[int] = []
    app.limiter("api", rate=rate, permit=0.5)
    app.queue("calls", limiter="api")

    @app.task(queue="calls")
    async def call(job: Job) -> None:
        runs.append(job.attempt)
        if len(runs) == 1:
            await asyncio.sleep(0.6)
        job.spend_permit()

    bench = await open_app(app)
    job = await call.enqueue()
    async with bench.working():
        await bench.until(job.id, JobState.SUCCEEDED)
    assert len(runs) >= 2
    assert set(runs) == {1}
    assert rate is None or await bench.scalar("SELECT sum(calls) FROM livewell.limiter_grant") >= len(runs)


async def test_release_is_nobodys_fault(app: Livewell, open_app: Open) -> None:
    """Handed back without an attempt, for later."""

    @app.task()
    async def not_now() -> None:
        raise Release("the market is closed", after="1h")

    bench = await open_app(app)
    job = await not_now.enqueue()
    async with bench.working():
        record = await bench.until(job.id, JobState.DELAYED)
    assert (record["attempt"], record["error"]) == (0, "the market is closed")


async def test_a_worker_that_stops_hands_limited_jobs_back(app: Livewell, open_app: Open) -> None:
    """At once, not when the lease runs out (Q13)."""
    started = asyncio.Event()
    app.queue("few", concurrency=2)

    @app.task(queue="few")
    async def work() -> None:
        started.set()
        await asyncio.sleep(60)

    bench = await open_app(app)
    job = await work.enqueue()
    async with bench.working() as worker:
        await asyncio.wait_for(started.wait(), 10)
        worker.stop()
        worker.stop()
    assert await bench.state(job.id) == JobState.READY


async def test_a_shared_call_is_charged_as_one_and_one_good_answer_makes_it_a_good_call(
    app: Livewell, open_app: Open
) -> None:
    """R13: whoever of its jobs reports the bytes.

    And one of them that blames the upstream fails alone.
    """
    app.limiter("api", budget="1MB/30d", estimate=1000, breaker=Breaker(in_row=1))
    app.queue("quotes", limiter="api", attempts=1)

    @app.task(queue="quotes", batch=50)
    async def refresh(quotes: list[Quote], jobs: list[Job]) -> list[Exception | None]:
        jobs[1].used(500)
        assert len(quotes) == 3
        return [None, None, Retry("503 for this page", blame=Blame.UPSTREAM)]

    bench = await open_app(app)
    jobs = await refresh.enqueue_many([{"symbol": s} for s in "ABC"])
    async with bench.working():
        await bench.until(jobs[0].id, JobState.SUCCEEDED)
        await bench.until(jobs[2].id, JobState.FAILED)
    assert await bench.scalar("SELECT sum(units) FROM livewell.limiter_usage") == 500
    assert await bench.scalar("SELECT breaker FROM livewell.limiter_credential") == "closed"


async def test_whoever_merely_names_a_queue_leaves_its_limits_alone(app: Livewell, open_app: Open) -> None:
    """Another process, with a task in the queue and nothing to say about it."""
    app.queue("few", concurrency=2, attempts=9)

    @app.task(queue="few")
    async def work() -> None:
        pass

    bench = await open_app(app)
    names = Livewell(Settings())

    @names.task(queue="few")
    async def other() -> None:
        pass

    await open_app(names)
    await other.enqueue()
    limits = "SELECT (concurrency, attempts)::text FROM livewell.queue WHERE name = 'few'"
    assert await bench.scalar(limits) == "(2,9)"


async def test_a_limiter_may_be_declared_after_opening(app: Livewell, open_app: Open) -> None:
    """It is sent with the first queue that names it."""
    bench = await open_app(app)
    app.limiter("late", concurrency=1)
    app.queue("calls", limiter="late")

    @app.task(queue="calls")
    async def call() -> None:
        pass

    await call.enqueue()
    assert await bench.scalar("SELECT limiter FROM livewell.queue WHERE name = 'calls'") == "late"


async def test_a_batch_opened_in_a_transaction_is_sealed_in_it(app: Livewell, open_app: Open) -> None:
    """All of it or nothing.

    And the follow-up knows which batch it follows, and keeps its options.
    """
    seen: list[int] = []

    @app.task()
    async def work(n: int) -> None:
        del n

    @app.task()
    async def report(batch_id: int) -> None:
        seen.append(batch_id)

    bench = await open_app(app)
    after = report.options(unique_key="one report")
    async with (
        app.transaction() as tx,
        await app.batch(follow_up=after, arguments=lambda i: {"batch_id": i}, tx=tx) as batch,
    ):
        await work.options(batch=batch).enqueue_many([{"n": n} for n in range(3)], tx=tx)
    async with bench.working():
        await eventually_async(lambda: seen, timeout=20)
    assert seen == [batch.id]
    assert (await app.find_batch(batch.id).state()).succeeded == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"credentials": "main"}, "a list of names"),
        ({"credentials": ["a", "a"]}, "'a' is named twice"),
        ({"burst": None}, "burst None: 1 to 100,000"),
        ({"burst": 1.5}, "burst 1.5"),
        ({"burst": 0}, "burst 0"),
        ({"rate": 300}, "write it like"),
        ({"rate": "0/min"}, "1 to 1,000,000 calls"),
        ({"rate": "-5/min"}, "write it like"),
        ({"rate": "5/400d"}, "100 ms to a day"),
        ({"rate": "1/min"}, "reserve=0"),
        ({"reserve": "100%"}, "reserve"),
        ({"budget": "1XB/30d"}, "units are B"),
        ({"budget": "1GB/10min"}, "write it like"),
        ({"budget": "0GB/30d"}, "units, over 1 hour"),
        ({"budget": "99999999999TB/30d"}, "2⁶² units"),
        ({"budget": "1GB/30d", "budget_stop": 0.5}, "at most the first"),
        ({"budget": "1GB/30d", "budget_resets": "00:00"}, "rolling"),
        ({"budget": "10 calls/day", "budget_resets": "25:00"}, "write it like"),
        ({"budget": "10 calls/day", "budget_resets": "10:00 Mars/Base"}, "write it like"),
        ({"estimate": 1.5}, "whole number"),
        ({"concurrency": 0}, "concurrency 0"),
        ({"per_key": -1}, "per_key -1"),
        ({"breaker": True}, "livewell.Breaker"),
        ({"breaker": Breaker(failures=0)}, "failures 0"),
        ({"breaker": Breaker(open_for="10m", open_max="1m")}, "shorter than open_for"),
        ({"permit": "2h"}, "0.001 to 60 seconds"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_in_words(
    app: Livewell, options: dict[str, object], message: str
) -> None:
    """Where it is declared, not when the first job waits for ever."""
    with pytest.raises(ConfigurationError, match=message):
        app.limiter("api", **options)  # type: ignore[arg-type] # on purpose


async def test_unknown_limiters_and_credentials_are_named(app: Livewell, open_app: Open) -> None:
    """With those there are."""
    api = app.limiter("api", credentials=["main"])
    with pytest.raises(UnknownLimiter, match="there are: api"):
        app.queue("calls", limiter="apo")
    await open_app(app)
    with pytest.raises(InvalidOption, match="main"):
        await api.observe({"Retry-After": "3"})
    assert await api.observe({"Retry-After": "3"}, credential="main")
    assert not await api.observe({"Content-Type": "text/plain"}, credential="main")


async def test_a_key_of_a_megabyte_is_refused_with_its_size(app: Livewell, open_app: Open) -> None:
    """And not shown whole."""

    @app.task()
    async def work() -> None:
        pass

    await open_app(app)
    with pytest.raises(InvalidOption, match="1,000,000 bytes"):
        await work.options(group="x" * 1_000_000).enqueue()


async def test_what_a_buried_worker_measured_is_booked(app: Livewell, open_app: Open) -> None:
    """The call was made: its bytes count, though its job is somebody else's by now.

    Seen to fail with the results of a buried worker dropped.
    """
    runs: list[int] = []
    measured = asyncio.Event()
    app.limiter("api", budget="1MB/day", estimate=10)
    app.queue("calls", limiter="api")

    @app.task(queue="calls")
    async def call(job: Job) -> None:
        runs.append(job.id)
        if len(runs) > 1:
            job.used(7)
            return
        job.used(123)
        measured.set()
        await asyncio.sleep(30)

    bench = await open_app(app)
    job = await call.enqueue()
    async with bench.working():
        await asyncio.wait_for(measured.wait(), 10)
        await bench.app.database.call("DELETE FROM livewell.worker")
        await bench.until(job.id, JobState.SUCCEEDED)
    assert await bench.scalar("SELECT sum(units) FROM livewell.limiter_usage") == 123 + 7


async def test_a_silence_that_was_heard_while_the_database_was_away_comes_before_the_next_claim(
    app: Livewell, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G5: the answer could not be written down; the worker says it before it claims again.

    Seen to fail on 0.5.0: nobody ever knew of the silence.
    """
    runs: list[int] = []
    api = app.limiter("api", concurrency=1)
    app.queue("calls", limiter="api")

    async def away(query: str, params: object) -> list[tuple[object, ...]]:
        raise DatabaseUnavailable("away")

    @app.task(queue="calls")
    async def call(job: Job) -> None:
        runs.append(job.id)
        with monkeypatch.context() as patched:
            patched.setattr(api, "_call", away)
            with suppress(DatabaseUnavailable):
                await api.observe({"Retry-After": "300"})

    bench = await open_app(app)
    jobs = [await call.enqueue() for _ in range(3)]
    async with bench.working():
        await bench.until(jobs[0].id, JobState.SUCCEEDED)

        async def silent() -> bool:
            return (await bench.app.admin.why(jobs[1].id)).reason == "upstream"

        await eventually_async(silent, what="the silence is known")
    assert len(runs) == 1
