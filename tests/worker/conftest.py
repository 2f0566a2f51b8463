"""An app on the test's own database, and a real worker in the test's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from livewell import JobState, Livewell, Settings
from livewell.queue.worker.worker import Worker
from livewell.testing.processes import eventually_async


class Bench:
    """The app under test with short ways to run a worker and to look at a job."""

    def __init__(self, app: Livewell) -> None:
        self.app = app

    @asynccontextmanager
    async def working(self, *, slots: int = 10) -> AsyncIterator[Worker]:
        worker = self.app.worker(slots=slots)
        running = asyncio.create_task(worker.run())
        await asyncio.wait([running, asyncio.create_task(worker.started.wait())], return_when=asyncio.FIRST_COMPLETED)
        try:
            yield worker
        finally:
            worker.stop()
            await running

    async def state(self, job_id: int) -> str:
        return str((await self.app.admin.job(job_id))["state"])

    async def until(self, job_id: int, state: JobState) -> dict[str, Any]:
        async def reached() -> bool:
            return await self.state(job_id) == state

        await eventually_async(reached, timeout=20, what=f"job {job_id} is {state}")
        return await self.app.admin.job(job_id)

    async def scalar(self, query: str, *params: object) -> Any:
        return (await self.app.database.call(query, params))[0][0]


@pytest.fixture
async def open_app(livewell_settings: Settings) -> AsyncIterator[Callable[[Livewell], Awaitable[Bench]]]:
    """Open an app that the test has declared its tasks on."""
    opened: list[Livewell] = []

    async def open_(app: Livewell) -> Bench:
        opened.append(await app.open(settings=livewell_settings))
        return Bench(app)

    yield open_
    for app in opened:
        await app.close()
