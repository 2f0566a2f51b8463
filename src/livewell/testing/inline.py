"""Run jobs inside the test, with the same SQL and the same rules as the real worker.

There are no processes and no waiting.

async with app: …
await welcome.enqueue(user_id=7)
ran = await InlineWorker(app).run()
assert [r.outcome for r in ran] == [Succeeded()]
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from livewell.app import Livewell
from livewell.model import Claimed, FinishedElsewhere, Outcome, Succeeded
from livewell.queue.failures import FailureLog
from livewell.queue.job import Job
from livewell.queue.outcomes import end_of, results
from livewell.queue.run import run_call
from livewell.queue.worker.claim_limited import LimitedRow
from livewell.settings import Settings

_LEASE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Ran:
    """One run: which job, and what came of it (None: it was no longer ours)."""

    job_id: int
    kind: str
    attempt: int
    outcome: Outcome | None


class InlineWorker:
    """Claims and runs one job at a time, in order, until nothing is ready."""

    def __init__(self, app: Livewell) -> None:
        self._app = app
        self._worker = 0
        self._failures = FailureLog()

    async def run(self, *, limit: int = 1000) -> list[Ran]:
        """Run what is ready, and what becomes ready meanwhile; at most this many."""
        await self._register()
        ran: list[Ran] = []
        while len(ran) < limit:
            await self._app.database.call("SELECT livewell.promote_jobs(10000)")
            jobs = await self._claim_call()
            if not jobs:
                break
            ran += await self._run(jobs)
        self._failures.flush(everything=True)
        return ran

    async def claim(self, limit: int) -> list[Claimed]:
        """Claim without running."""
        await self._register()
        queues = sorted({definition.policy.queue for definition in self._app.tasks.values()})
        rows = await self._app.database.call(
            "SELECT * FROM livewell.claim_jobs(%s, %s, %s, true)", (self._worker, queues, limit)
        )
        return [Claimed(*row[1:]) for row in rows if row[0] == "claimed"]

    async def _claim_call(self) -> list[Job]:
        """The jobs of the next call: from an ordinary queue one job, from a limited one what may
        share a call.
        """
        claimed = await self.claim(1)
        if claimed:
            return [Job(claimed[0], self._worker, self._app.database)]
        lists = {name: task.policy.batch for name, task in self._app.tasks.items() if task.policy.batch > 1}
        for queue in sorted({definition.policy.queue for definition in self._app.tasks.values()}):
            sent = time.monotonic()
            rows = await self._app.database.call(
                "SELECT * FROM livewell.claim_limited(%s, %s, 1, true, %s, %s)",
                (self._worker, queue, list(lists), list(lists.values())),
            )
            if rows and rows[0][0] == "claimed":
                return [
                    Job(row.claimed, self._worker, self._app.database, row.permit(sent))
                    for row in map(LimitedRow.read, rows)
                ]
        return []

    async def _run(self, jobs: Sequence[Job]) -> list[Ran]:
        said = await run_call(jobs, self._app.tasks, _in_thread)
        ends = [(job, end_of(job, end)) for job, end in zip(jobs, said, strict=True)]
        for job, end in ends:
            self._failures.tell(job, end)
        ended = [(job, end) for job, end in ends if end is not None and not isinstance(end, FinishedElsewhere)]
        if ended:
            await self._app.database.call(
                "SELECT * FROM livewell.finish_jobs(%s, %s::bigint[], %s::bigint[], %s::jsonb)",
                (self._worker, *results(ended)),
            )
        return [
            Ran(job.id, job.claimed.kind, job.attempt, Succeeded() if isinstance(end, FinishedElsewhere) else end)
            for job, end in ends
        ]

    async def _register(self) -> None:
        alive = await self._app.database.call("SELECT 1 FROM livewell.worker WHERE id = %s", (self._worker,))
        if not alive:
            rows = await self._app.database.call(
                "SELECT livewell.register_worker('inline', 'test', %s, %s, 1, %s)",
                (sorted({d.policy.queue for d in self._app.tasks.values()}), sorted(self._app.tasks), _LEASE_SECONDS),
            )
            self._worker = rows[0][0]


@asynccontextmanager
async def opened(app: Livewell, settings: Settings) -> AsyncIterator[Livewell]:
    """Open an app on a test's database."""
    await app.open(settings=settings)
    try:
        yield app
    finally:
        await app.close()


async def _in_thread(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    return await asyncio.to_thread(lambda: function(**arguments))
