"""A task that raises is told to whoever is on call.

In the log, with the job, and with the dead letter (R23, Q7).
"""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from livewell import Backoff, Job, JobState, Livewell, Retry, Settings
from livewell.testing.inline import InlineWorker
from livewell.testing.processes import eventually_async
from tests.integration.queue.bench import Open
from tests.support import canary


@pytest.fixture
def app() -> Livewell:
    app = Livewell(Settings())
    for queue in ("default", "many"):
        app.queue(queue, backoff=Backoff(base_seconds=0.01, cap_seconds=0.05))
    return app


def _failures(lines: list[Any]) -> list[Any]:
    return [line for line in lines if line["event"].startswith("job failed")]


class Item(BaseModel):
    """What one job of a call brings."""

    number: int


def read_price(row: dict[str, str]) -> float:
    """Fail the way code in the field fails: one error on top of another."""
    try:
        return float(row["price"])
    except KeyError as error:
        raise ValueError("the row has no price") from error


@pytest.mark.parametrize("kind", ["async", "sync", "batch"])
async def test_a_task_that_raises_is_logged_and_kept_with_its_traceback(
    app: Livewell, open_app: Open, kind: str
) -> None:
    """Job, task, queue, attempt, what comes next, the user's own frames and the cause.

    Seen failing: the worker of 0.5.0 logged nothing at any level, and the dead letter had one line
    without its cause (R23, Q7).
    """

    @app.task(attempts=2, name="async")
    async def in_the_loop(number: int) -> None:
        read_price({})

    @app.task(attempts=2, name="sync")
    def in_a_thread(number: int) -> None:
        read_price({})

    @app.task(attempts=2, name="batch", queue="many", batch=5)
    async def of_many(items: list[Item]) -> None:
        read_price({})

    bench = await open_app(app)
    task: Any = {"async": in_the_loop, "sync": in_a_thread, "batch": of_many}[kind]
    with capture_logs() as lines:
        job = await task.enqueue(number=1)
        async with bench.working():
            record = await bench.until(job.id, JobState.FAILED)

    first, last = _failures(lines)
    assert (first["job"], first["task"], first["attempt"], first["log_level"]) == (job.id, kind, "1 of 2", "warning")
    assert first["queue"] == ("many" if kind == "batch" else "default")
    assert first["next"].startswith("retry in about ")
    assert (last["attempt"], last["next"], last["log_level"]) == ("2 of 2", "dead letter", "error")
    assert last["error"].startswith("ValueError: the row has no price (test_failures.py:")
    for text in (last["exception"], record["traceback"]):
        assert "in read_price" in text
        assert "KeyError: 'price'" in text
        assert "direct cause" in text
        assert text.rstrip().endswith("ValueError: the row has no price")
        assert "queue/run.py" not in text


async def test_the_inline_worker_tells_failures_too(app: Livewell, open_app: Open) -> None:
    """A test that fails shows why its job failed. Seen failing: it said nothing."""

    @app.task(attempts=1)
    async def price() -> None:
        read_price({})

    await open_app(app)
    job = await price.enqueue()
    with capture_logs() as lines:
        await InlineWorker(app).run()
    assert "in read_price" in _failures(lines)[0]["exception"]
    assert "in read_price" in (await app.admin.job(job.id))["traceback"]


async def test_a_storm_of_one_failure_does_not_drown_another(app: Livewell, open_app: Open) -> None:
    """Five in full, the rest counted; the other task's only failure is told among them (R23)."""

    @app.task(attempts=1)
    async def broken(number: int) -> None:
        raise ValueError(f"row {number} is bad")

    @app.task(attempts=1)
    async def rare() -> None:
        raise ValueError("once")

    bench = await open_app(app)
    with capture_logs() as lines:
        async with bench.working():
            jobs = await broken.enqueue_many([{"number": n} for n in range(60)])
            await bench.until(jobs[-1].id, JobState.FAILED)
            alone = await rare.enqueue()
            await bench.until(alone.id, JobState.FAILED)

            async def all_dead() -> bool:
                return bool(await bench.scalar("SELECT count(*) = 61 FROM livewell.dead_job"))

            await eventually_async(all_dead, timeout=20)
    told = _failures(lines)
    assert [line["task"].rpartition(".")[2] for line in told] == ["broken"] * 5 + ["rare"]
    more = [line for line in lines if line["event"] == "more failures of the same cause"]
    assert sum(line["jobs"] for line in more) == 55
    assert all("broken" in line["cause"] for line in more)


async def test_a_handler_that_hangs_is_told_with_the_place_where_it_hung(app: Livewell, open_app: Open) -> None:
    """The traceback of a timeout names the line that waited."""

    async def wait_for_the_partner() -> None:
        await asyncio.Event().wait()

    @app.task(timeout="200ms", attempts=1)
    async def hang() -> None:
        await wait_for_the_partner()

    bench = await open_app(app)
    job = await hang.enqueue()
    async with bench.working():
        record = await bench.until(job.id, JobState.FAILED)
    assert record["error"] == "ran longer than its timeout of 0.2 s"
    assert "in wait_for_the_partner" in record["traceback"].replace(
        "test_a_handler_that_hangs_is_told_with_the_place_where_it_hung.<locals>.", ""
    )


async def test_no_secret_leaves_with_a_traceback(
    app: Livewell, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by its looks, nor because the environment knows it, nor as the value of a variable (F-F5)."""
    token = canary.watch("hq7Zk2Lw9Xp4Vt8Nb3")
    monkeypatch.setenv("SHOP_API_KEY", token)
    password = canary.watch("s3cret-passw0rd-77")

    @app.task(attempts=1)
    async def call_home(job: Job) -> None:
        held = token
        try:
            raise ConnectionError(f"GET https://shop.example.com/{held} refused")
        except ConnectionError as error:
            raise Retry(f"postgresql://ada:{password}@db/x does not answer {len(held)}") from error

    bench = await open_app(app)
    job = await call_home.enqueue()
    with capture_logs() as lines:
        async with bench.working():
            record = await bench.until(job.id, JobState.FAILED)
    assert "ConnectionError: GET https://shop.example.com/*** refused" in record["traceback"]
    assert canary.leaks({"log": str(lines), "record": str(record)}, [token, password]) == []


async def test_a_redriven_letter_keeps_its_traceback_until_it_fails_anew(app: Livewell, open_app: Open) -> None:
    """The last failure is shown while the job waits; an old one never beside a newer error."""
    fail = [True]

    @app.task(attempts=1)
    async def price() -> None:
        if fail[0]:
            read_price({})
        raise Retry("busy", after="1h")

    bench = await open_app(app)
    job = await price.enqueue()
    async with bench.working():
        await bench.until(job.id, JobState.FAILED)
        await app.admin.pause("default")
        await app.admin.redrive([job.id])
        assert "in read_price" in (await app.admin.job(job.id))["traceback"]
        fail[0] = False
        await app.admin.pause("default", paused=False)
        record = await bench.until(job.id, JobState.FAILED)
    assert record["error"] == "busy"
    assert record["traceback"] is None
