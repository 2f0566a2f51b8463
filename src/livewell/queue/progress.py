"""Follow jobs: one reader per process asks how far all of them are, and tells their followers.

followed ──changed──▶ told ──▶ followed        ──ended──▶ told for the last time
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError
from livewell.model import JobState

log = structlog.get_logger("livewell.progress")

_ENDED = (JobState.SUCCEEDED, JobState.CANCELLED, JobState.FAILED)
_READ = (
    "SELECT id, queue, kind, state, attempt, max_attempts, progress, progress_note, reason, created_at, "
    "started_at, finished_at FROM livewell.show_progress(%s::bigint[])"
)
_PAGE = 1000
_EVERY_SECONDS = 0.5


class JobFollower:
    """The latest record of one job, until it is taken."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        self.wake = asyncio.Event()
        self.ended = False
        self._seen: dict[str, Any] | None = None
        self._latest: dict[str, Any] | None = None

    def tell(self, record: dict[str, Any] | None) -> None:
        """A record, or None when there is no such job any more."""
        if record != self._seen:
            self._seen = self._latest = record
            self.wake.set()
        if record is None or record["state"] in _ENDED:
            self.ended = True
            self.wake.set()

    def pop(self) -> dict[str, Any] | None:
        """What is new, if anything is."""
        latest, self._latest = self._latest, None
        return latest


class JobProgress:
    """The reader of one process; it asks only while somebody follows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers: dict[int, set[JobFollower]] = {}
        self._reading: asyncio.Task[None] | None = None
        self.queries = 0

    async def follow(self, job_id: int) -> JobFollower | None:
        """Begin to follow; None when there is no such job."""
        follower = JobFollower(job_id)
        records = await self._records([job_id])
        if job_id not in records:
            return None
        follower.tell(records[job_id])
        self._followers.setdefault(job_id, set()).add(follower)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._run(), name="job-progress")
        return follower

    def unfollow(self, follower: JobFollower) -> None:
        """Stop following."""
        followers = self._followers.get(follower.job_id, set())
        followers.discard(follower)
        if not followers:
            self._followers.pop(follower.job_id, None)

    async def close(self) -> None:
        """End the reader."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading], timeout=2)

    async def _run(self) -> None:
        while self._followers:
            await asyncio.sleep(_EVERY_SECONDS)
            waiting = iter(list(self._followers))
            while page := list(islice(waiting, _PAGE)):
                try:
                    records = await self._records(page)
                except DatabaseError as error:
                    log.warning("cannot read the progress of jobs", error=str(error))
                    break
                for job_id in page:
                    for follower in list(self._followers.get(job_id, ())):
                        follower.tell(records.get(job_id))

    async def _records(self, ids: list[int]) -> dict[int, dict[str, Any]]:
        self.queries += 1
        return {row["id"]: row for row in await self._database.call_dicts(_READ, (ids,))}
