"""A job's progress as a stream of its record.

The record is sent at once, and again whenever state, attempt, progress or note has changed, until
the job has ended.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from fastapi import APIRouter

from livewell.queue.progress import JobFollower, JobProgress
from livewell.server.answers.json_answer import JobId, encode
from livewell.server.answers.problems import not_found
from livewell.server.auth.caller import Caller
from livewell.server.depends import Operator, TheState
from livewell.server.streams.stream import Stream, event

router = APIRouter(prefix="/v1", tags=["jobs"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events: job (a record), beat, bye.", "content": {"text/event-stream": {}}}
}


class JobRecords:
    """The source of one job's stream."""

    def __init__(self, progress: JobProgress, follower: JobFollower) -> None:
        self._progress = progress
        self._follower = follower
        self.wake: asyncio.Event = follower.wake
        self.much = False  # one record at a time
        self.name = f"job:{follower.job_id}:{secrets.token_hex(8)}"  # any number may follow one job

    def next(self) -> bytes | None:
        """The record, if it is another one."""
        record = self._follower.pop()
        return None if record is None else event("job", encode(record))

    def over(self) -> str | None:
        """The job has ended."""
        return "ended" if self._follower.ended else None

    def allow(self, caller: Caller) -> None:
        """All of a record or nothing."""

    def close(self) -> None:
        """Follow it no more."""
        self._progress.unfollow(self._follower)


@router.get("/jobs/{job_id}/stream", status_code=200, response_class=Stream, responses=_STREAM)
async def stream_job(state: TheState, caller: Operator, job_id: JobId) -> Stream:
    """Follow a job until it has ended."""
    state.streams.admit(caller)
    follower = await state.progress.follow(job_id)
    if follower is None:
        raise not_found()
    return state.streams.start(caller, JobRecords(state.progress, follower), {"operate"})
