"""A real worker in the test's event loop, and short ways to look at a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from livewell import JobState, Livewell
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


Open = Callable[[Livewell], Awaitable[Bench]]
