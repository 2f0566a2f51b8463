"""What people do with a queue: look, pause, cancel, mend, redrive. Every list is a keyset page."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

from livewell.db import Database, acts
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.errors import InvalidOption, JobNotFound, UnknownQueue
from livewell.model import Cancelled, JobState
from livewell.queue.definition import check_json, encode_json
from livewell.queue.nudges import CANCEL, EVERY
from livewell.queue.why import Why

Record = dict[str, Any]

_JOB = "SELECT s.*, livewell.show_traceback(s.id) AS traceback FROM livewell.show_job(%s) s"
_PAUSE = acts.audited("livewell.pause_queue(%s, %s)")
_DISCARD = acts.audited("livewell.discard_dead(%s)")
_REDRIVE = """
WITH done AS MATERIALIZED (SELECT * FROM livewell.redrive_dead(%s, %s, %s, %s))
SELECT d.redriven, d.kept,
    livewell.record_act(%s, %s, %s, %s::jsonb, d.redriven || ' redriven, ' || d.kept || ' stayed')
FROM done d
"""
_MEND = "SELECT livewell.mend_dead(%s, %s::jsonb, %s, %s)"
_IDS_NAMED_MAX = 50  # in a line of the audit


class QueueAdmin:
    """The operator's hands, used by the command line and by code."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database, app.nudger)

    async def queues(self) -> list[Record]:
        """Every queue with counts, workers and pace."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_queues()")

    async def workers(self) -> list[Record]:
        """Every worker incarnation and its lease."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_workers()")

    async def limiters(self) -> list[Record]:
        """Every credential of every limiter: what it has used, and what it waits for."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_limiters()")

    async def pause(self, queue: str, *, paused: bool = True) -> None:
        """Stop (or start) claiming from a queue."""
        act = acts.line("queues.pause" if paused else "queues.resume", queue)
        if not (await self._database.call(_PAUSE, (queue, paused, *act)))[0][0]:
            names = [row["name"] for row in await self.queues()]
            raise UnknownQueue(f"queue {queue!r} is not declared; there are: {', '.join(names) or 'none'}")
        if not paused:
            self._nudger.nudge(queue)

    async def jobs(
        self, *, queue: str | None = None, state: str | None = None, after: int = 0, limit: int = 50
    ) -> list[Record]:
        """A page of live jobs by id."""
        live = [s.value for s in (JobState.DELAYED, JobState.HELD, JobState.READY, JobState.RUNNING)]
        if state is not None and state not in live:
            raise InvalidOption(f"state {state!r}: allowed are {', '.join(live)}")
        rows = await self._database.call_dicts(
            "SELECT * FROM livewell.list_jobs(%s, %s, %s, %s)", (queue, state, after, limit)
        )
        return [_with_task(row) for row in rows]

    async def job(self, job_id: int) -> Record:
        """One job, wherever it is now, with the traceback of its last failure."""
        rows = await self._database.call_dicts(_JOB, (job_id,))
        if not rows:
            raise JobNotFound(
                f"job {job_id}: no live job, dead letter or finished job has that id (history is kept for some days)"
            )
        return _with_task(rows[0])

    async def follow(self, job_id: int, *, every: float = 0.5) -> AsyncIterator[Record]:
        """The job's record whenever its state, progress or note has changed, until it has ended."""
        last: tuple[Any, ...] | None = None
        while True:
            record = await self.job(job_id)
            seen = tuple(record[name] for name in ("state", "attempt", "progress", "progress_note"))
            if seen != last:
                yield record
            if record["state"] in (JobState.SUCCEEDED, JobState.CANCELLED, JobState.FAILED):
                return
            last = seen
            await asyncio.sleep(every)

    async def why(self, job_id: int) -> Why:
        """Why a job is not running: the first thing that stands in its way.

        .words says it in a sentence.
        """
        rows = await self._database.call("SELECT * FROM livewell.why_job(%s)", (job_id,))
        return Why(job_id, *rows[0])

    async def cancel(self, job_id: int) -> Cancelled:
        """Cancel a waiting job at once, or ask the worker of a running one."""
        answer = Cancelled((await self._database.call("SELECT livewell.cancel_job(%s)", (job_id,)))[0][0])
        if answer is Cancelled.REQUESTED:
            self._nudger.nudge(CANCEL)
        return answer

    async def retry(self, job_id: int) -> bool:
        """Run a delayed job now, or redrive a dead letter; False when it is neither."""
        record = await self.job(job_id)
        if record["state"] == JobState.FAILED:
            return (await self.redrive([job_id]))[0] == 1
        done = bool((await self._database.call("SELECT livewell.hasten_job(%s)", (job_id,)))[0][0])
        if done:
            self._nudger.nudge(record["queue"])
        return done

    async def dead(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        after: int = 0,
        limit: int = 50,
    ) -> list[Record]:
        """A page of dead letters by id."""
        rows = await self._database.call_dicts(
            "SELECT * FROM livewell.list_dead(%s, %s, %s, %s)", (queue, task, after, limit)
        )
        return [_with_task(row) for row in rows]

    async def letter(self, job_id: int) -> Record:
        """One dead letter, as job() shows it; raises JobNotFound if it is none, and says what it is."""
        record = await self.job(job_id)
        if record["state"] != JobState.FAILED:
            raise JobNotFound(
                f"job {job_id} is no dead letter, it is {record['state']}; see: livewell jobs show {job_id}"
            )
        return record

    async def edit(self, job_id: int, payload: object, *, was: str | None = None) -> None:
        """Mend a dead letter's payload.

        `payload`: a JSON object, or its text, every digit of which is kept. `was`: the payload that
        the caller has seen, as job() shows it; if it is another one by now, nothing is done.
        """
        what = f"dead letter {job_id}"
        bytes_max = self._database.settings.payload_bytes_max
        if isinstance(payload, str):
            text = check_json(what, payload, bytes_max)
        else:
            text = encode_json(what, payload, bytes_max)
        seen = None if was is None else hashlib.md5(was.encode(), usedforsecurity=False).hexdigest()
        answer = (await self._database.call(_MEND, (job_id, text, seen, acts.actor())))[0][0]
        if answer == "unknown":
            raise JobNotFound(f"{what}: there is none with that id; list them with: livewell dead list")
        if answer == "changed":
            raise InvalidOption(f"{what}: somebody else changed its payload meanwhile; look at it again")

    async def discard(self, ids: Sequence[int]) -> int:
        """Delete dead letters for good; answers how many there were."""
        return int((await self._database.call(_DISCARD, (list(ids), *_letters("dead.discard", ids))))[0][0])

    async def redrive(
        self,
        ids: Sequence[int] | None = None,
        *,
        queue: str | None = None,
        task: str | None = None,
        limit: int = 1000,
    ) -> tuple[int, int]:
        """Give dead letters another life.

        Answers how many went, and how many stayed because their key is taken.
        """
        act = _letters("dead.redrive", ids, queue=queue, task=task)
        rows = await self._database.call(_REDRIVE, (ids, queue, task, limit, *act))
        if rows[0][0]:
            self._nudger.nudge(EVERY)
        return rows[0][0], rows[0][1]


def _letters(action: str, ids: Sequence[int] | None, **others: str | None) -> tuple[str, str, str, str]:
    """The line of the audit for an act on dead letters."""
    named = {name: value for name, value in others.items() if value is not None}
    if ids is None:
        return acts.line(action, ", ".join(f"{name} {value}" for name, value in named.items()) or "all", **named)
    subject = f"job {ids[0]}" if len(ids) == 1 else f"{len(ids)} dead letters"
    return acts.line(action, subject, ids=list(ids[:_IDS_NAMED_MAX]), **named)


def _with_task(row: Record) -> Record:
    """The column is called kind, and a task is called task everywhere else."""
    return {"task" if name == "kind" else name: value for name, value in row.items()}
