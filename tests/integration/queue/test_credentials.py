"""R13, X10: a worker claims only what it can call.

Seen failing with look() not asking can_use, as in 0.5.0: with API_TWO alone the jobs ran under
API_ONE, and with none at all the job ran under API_ONE.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import structlog.testing

from livewell import Job, JobState, Livewell, Settings
from livewell.refresh.definition.credentials import Credentials
from tests.integration.queue.bench import Bench, Open


@pytest.fixture
def app() -> Livewell:
    return Livewell(Settings())


def declare(app: Livewell, used: list[str | None]) -> Any:
    """A queue with two credentials, and a task that says with which of them it ran."""
    app.limiter("api", rate="100/s", credentials=["API_ONE", "API_TWO"])
    app.queue("calls", limiter="api")

    @app.task(queue="calls")
    async def call(job: Job) -> None:
        used.append(job.credential)

    return call


async def run(bench: Bench, has: set[str]) -> list[dict[str, Any]]:
    """Work for a moment with these credentials; answers what was logged."""
    worker = bench.app.worker(queues=["calls"])
    worker._limited._can_use = lambda _queue, credential: (
        credential in has
    )  # as Credentials.can_use does it for upstreams
    with structlog.testing.capture_logs() as logged:
        running = asyncio.create_task(worker.run())
        await worker.started.wait()
        for _ in range(100):
            await asyncio.sleep(0.02)
            reported = await bench.scalar("SELECT coalesce(max(lacks::text), '') FROM livewell.worker")
            left = await bench.scalar("SELECT count(*) FROM livewell.job")
            if (has and not left) or (not has and reported != "{}"):
                break
        worker.stop()
        await running
    return [dict(line) for line in logged if "credential is missing" in line["event"]]


async def test_it_claims_with_the_credentials_it_has(app: Livewell, open_app: Open) -> None:
    """Of several it uses those."""
    used: list[str | None] = []
    call = declare(app, used)
    bench = await open_app(app)
    for _ in range(6):
        await call.enqueue()

    lines = await run(bench, {"API_TWO"})

    assert used == ["API_TWO"] * 6
    assert [(line["upstream"], line["variable"]) for line in lines] == [("api", "API_ONE")]


async def test_without_any_it_claims_nothing_and_says_so(app: Livewell, open_app: Open) -> None:
    """No attempt is burnt; the log and the worker's row name the variables.

    With the credential a new process does the work.
    """
    used: list[str | None] = []
    call = declare(app, used)
    bench = await open_app(app)
    job = await call.enqueue()

    lines = await run(bench, set())

    assert used == []
    assert (await bench.app.admin.job(job.id))["attempt"] == 0
    assert [line["variable"] for line in lines] == ["API_ONE", "API_TWO"]
    assert lines[0]["queues_not_claimed"] == ["calls"]

    assert await run(bench, {"API_ONE", "API_TWO"}) == []
    await bench.until(job.id, JobState.SUCCEEDED)


def test_a_credential_of_an_upstream_is_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other limiters it is a name, and what it stands for is the application's."""
    credentials = Credentials(Settings())
    monkeypatch.setenv("SOME_KEY", "x")
    monkeypatch.delenv("OTHER_KEY", raising=False)
    assert credentials.can_use("refresh.fmp", "SOME_KEY")
    assert not credentials.can_use("refresh.fmp", "OTHER_KEY")
    assert credentials.can_use("calls", "OTHER_KEY")
