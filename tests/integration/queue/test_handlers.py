"""What becomes of a job, by how its handler ends."""

import asyncio
import threading

import pytest

from livewell import Backoff, Cancel, Job, JobState, Livewell, Retry, Settings
from livewell.errors import LivewellError
from livewell.testing.processes import eventually_async
from tests.integration.queue.bench import Open


@pytest.fixture
def app() -> Livewell:
    app = Livewell(Settings())
    app.queue("default", backoff=Backoff(base_seconds=0.01, cap_seconds=0.05))
    return app


async def test_an_async_handler_gets_its_arguments_as_declared(app: Livewell, open_app: Open) -> None:
    """JSON becomes the annotated types again."""
    got: list[object] = []

    @app.task()
    async def take(number: int, names: list[str], maybe: float | None = None) -> None:
        got.append((number, names, maybe))

    bench = await open_app(app)
    job = await take.enqueue(number=7, names=["a", "b"])
    async with bench.working():
        await bench.until(job.id, JobState.SUCCEEDED)
    assert got == [(7, ["a", "b"], None)]


async def test_a_sync_handler_runs_in_a_thread_of_its_own(app: Livewell, open_app: Open) -> None:
    """It does not block the event loop."""
    threads: list[threading.Thread] = []

    @app.task()
    def block() -> None:
        threads.append(threading.current_thread())

    bench = await open_app(app)
    job = await block.enqueue()
    async with bench.working():
        await bench.until(job.id, JobState.SUCCEEDED)
    assert threads[0] is not threading.main_thread()
    assert threads[0].daemon


async def test_a_failing_job_is_retried_and_then_dead(app: Livewell, open_app: Open) -> None:
    """It is run as often as it may, and its last error is kept without secrets."""
    attempts: list[int] = []

    @app.task(attempts=3)
    async def fail(job: Job) -> None:
        attempts.append(job.attempt)
        raise ValueError("connect to postgresql://ada:s3cret-pw@db/x failed \x00")

    bench = await open_app(app)
    job = await fail.enqueue()
    async with bench.working():
        record = await bench.until(job.id, JobState.FAILED)
    assert attempts == [1, 2, 3]
    assert record["reason"] == "attempts"
    assert "ValueError: connect to postgresql://" in record["error"]
    assert "s3cret-pw" not in record["error"]


async def test_retry_after_waits_that_long(app: Livewell, open_app: Open) -> None:
    """The handler chooses the pause, not the queue."""

    @app.task()
    async def later() -> None:
        raise Retry("busy", after="1h")

    bench = await open_app(app)
    job = await later.enqueue()
    async with bench.working():
        await bench.until(job.id, JobState.DELAYED)
    seconds = await bench.scalar(
        "SELECT extract(epoch FROM run_at - created_at)::float8 FROM livewell.job WHERE id = %s", job.id
    )
    assert 3590 < seconds < 3700


async def test_cancel_from_inside_ends_the_job_as_cancelled(app: Livewell, open_app: Open) -> None:
    """It is neither an error nor retried."""

    @app.task()
    async def give_up() -> None:
        raise Cancel("the user is gone")

    bench = await open_app(app)
    job = await give_up.enqueue()
    async with bench.working():
        record = await bench.until(job.id, JobState.CANCELLED)
    assert record["error"] == "the user is gone"


async def test_a_running_job_is_cancelled_promptly(app: Livewell, open_app: Open) -> None:
    """The handler sees CancelledError.

    The job ends cancelled although the heartbeat alone would not have come yet.
    """
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.task()
    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    bench = await open_app(app)
    job = await wait.enqueue()
    async with bench.working():
        await asyncio.wait_for(started.wait(), 20)
        assert await app.admin.cancel(job.id) == "requested"
        await asyncio.wait_for(stopped.wait(), 20)
        await bench.until(job.id, JobState.CANCELLED)


async def test_a_blocking_handler_sees_that_it_should_end(app: Livewell, open_app: Open) -> None:
    """Threads cannot be interrupted, so they look at job.cancel_requested."""
    started = threading.Event()
    seen = threading.Event()

    @app.task()
    def spin(job: Job) -> None:
        started.set()
        while not job.cancel_requested:
            threading.Event().wait(0.01)
        seen.set()

    bench = await open_app(app)
    job = await spin.enqueue()
    async with bench.working():
        await asyncio.to_thread(started.wait, 20)
        await app.admin.cancel(job.id)
        await bench.until(job.id, JobState.CANCELLED)
        assert await asyncio.to_thread(seen.wait, 20)


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_handler_that_hangs_is_ended_by_its_timeout(app: Livewell, open_app: Open, kind: str) -> None:
    """Its job fails that attempt; the worker goes on with others."""
    release = threading.Event()

    @app.task(timeout="200ms", attempts=1, name="hang")
    async def hang_async() -> None:
        await asyncio.Event().wait()

    @app.task(timeout="200ms", attempts=1, name="hang_sync")
    def hang_sync() -> None:
        release.wait(60)

    @app.task()
    async def other() -> None: ...

    bench = await open_app(app)
    job = await (hang_async if kind == "async" else hang_sync).enqueue()
    innocent = await other.enqueue()
    async with bench.working():
        record = await bench.until(job.id, JobState.FAILED)
        await bench.until(innocent.id, JobState.SUCCEEDED)
        release.set()
    assert record["error"] == "ran longer than its timeout of 0.2 s"


async def test_a_payload_that_no_longer_fits_is_a_dead_letter_and_can_be_mended(app: Livewell, open_app: Open) -> None:
    """The reason says which argument; after an edit and a redrive it succeeds."""

    @app.task()
    async def greet(name: str) -> None: ...

    bench = await open_app(app)
    job = await greet.enqueue(name="Ada")
    await bench.app.database.call(
        "UPDATE livewell.job SET payload = %s::jsonb WHERE id = %s", ('{"nom": "Ada"}', job.id)
    )
    async with bench.working():
        record = await bench.until(job.id, JobState.FAILED)
        assert record["reason"] == "payload"
        assert "name: Field required" in record["error"]
        assert "Ada" not in record["error"]
        await app.admin.edit(job.id, {"name": "Ada"})
        assert await app.admin.redrive([job.id]) == (1, 0)
        await bench.until(job.id, JobState.SUCCEEDED)


async def test_a_task_this_worker_does_not_know_waits_for_one_that_does(app: Livewell, open_app: Open) -> None:
    """During a roll-out the old worker gives it back.

    The attempt is not counted and the warning is.
    """

    @app.task()
    async def known() -> None: ...

    bench = await open_app(app)
    job = await known.enqueue()
    await bench.app.database.call("UPDATE livewell.job SET kind = 'from_the_future' WHERE id = %s", (job.id,))
    async with bench.working():
        record = await bench.until(job.id, JobState.DELAYED)
    assert record["attempt"] == 0
    assert await bench.scalar("SELECT n FROM livewell.warning WHERE what LIKE '%%from_the_future%%'") == 1


async def test_progress_is_visible_while_it_runs(app: Livewell, open_app: Open) -> None:
    """Percent and note arrive in the row."""
    go = asyncio.Event()

    @app.task()
    async def export(job: Job) -> None:
        job.progress(40, "halfway or so")
        await go.wait()

    bench = await open_app(app)
    job = await export.enqueue()
    async with bench.working():

        async def shown() -> bool:
            return bool((await app.admin.job(job.id))["progress"] == 40)

        await eventually_async(shown, timeout=20)
        assert (await app.admin.job(job.id))["progress_note"] == "halfway or so"
        go.set()
        await bench.until(job.id, JobState.SUCCEEDED)


class Unspeakable(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "how", [Unspeakable(), asyncio.CancelledError(), SystemExit(3), MemoryError()], ids=lambda how: type(how).__name__
)
async def test_a_slot_outlives_whatever_its_handler_raises(app: Livewell, open_app: Open, how: BaseException) -> None:
    """The job fails; the worker's only slot goes on to the next one.

    (Without this the slot died and the job was held for ever.)
    """

    @app.task(attempts=1)
    async def bad() -> None:
        raise how

    @app.task()
    async def good() -> None: ...

    bench = await open_app(app)
    job = await bad.enqueue()
    after = await good.enqueue()
    async with bench.working(slots=1):
        record = await bench.until(job.id, JobState.FAILED)
        await bench.until(after.id, JobState.SUCCEEDED)
    assert record["reason"] == "attempts"


async def test_a_worker_whose_process_has_no_memory_left_ends(
    app: Livewell, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of it may have failed unseen.

    A request that was merely too large leaves it alone (F-A8 does both for real).
    """

    @app.task()
    async def greedy() -> None:
        raise MemoryError

    await open_app(app)
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    await greedy.enqueue()
    await eventually_async(lambda: worker.finished == 1, timeout=20)
    assert not running.done()

    monkeypatch.setattr("livewell.queue.run._memory_left", lambda: False)
    await greedy.enqueue()
    with pytest.raises(LivewellError, match="ran out of memory"):
        await asyncio.wait_for(running, 20)


async def test_whoever_follows_a_job_sees_its_progress_and_its_end(open_app: Open) -> None:
    """Q9: each change once, in order, until it has ended."""
    app = Livewell(Settings())
    seen = asyncio.Event()

    @app.task()
    async def count(job: Job) -> None:
        job.progress(40, "nearly")
        await asyncio.wait_for(seen.wait(), 20)

    bench = await open_app(app)
    enqueued = await count.enqueue()
    records: list[tuple[str, int, str | None]] = []
    async with bench.working():
        async for record in app.follow(enqueued.id, every=0.02):
            records.append((record["state"], record["progress"], record["progress_note"]))
            if record["progress"] == 40:
                seen.set()
    assert records[-2:] == [("running", 40, "nearly"), ("succeeded", 100, None)]
