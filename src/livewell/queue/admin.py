"""What people do with a queue: look, pause, cancel, mend, redrive. Every list is a keyset page."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from livewell.db import Database, acts
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.errors import InvalidOption, JobNotFound, UnknownQueue
from livewell.model import Cancelled, JobState
from livewell.queue.definition import check_json, encode_json
from livewell.queue.job_filter import LIVE, JobFilter
from livewell.queue.nudges import CANCEL, EVERY
from livewell.queue.why import Why

Record = dict[str, Any]

_JOB = (
    "SELECT s.*, livewell.show_traceback(s.id) AS traceback, livewell.show_failures(s.id) AS errors "
    "FROM livewell.show_job(%s) s"
)
_FIND = (
    "SELECT f.looked, f.next, r.* FROM livewell.find_jobs(%s::jsonb, %s, %s, %s, %s) f "
    "LEFT JOIN LATERAL livewell.read_jobs(f.ids, %s) r ON true"
)
_PAUSED = (
    "SELECT jsonb_build_object('paused', q.paused_at IS NOT NULL) FROM livewell.queue q "
    "WHERE q.name = %s FOR NO KEY UPDATE"
)
_PAUSE_ALL = (
    "SELECT b.n, b.changed FROM (SELECT set_config('livewell.origin', %s, true) AS origin) p "
    "CROSS JOIN LATERAL livewell.pause_queues(%s, %s, %s, coalesce(%s, p.origin)) b"
)
_PAUSE = acts.audited("livewell.pause_queue(%s, %s)", before=_PAUSED)
_LIVE = (
    "SELECT jsonb_build_object('state', j.state, 'queue', j.queue, 'task', j.kind) FROM livewell.job j "
    "WHERE j.id = %s FOR UPDATE"
)
# What became of a job that was to be cancelled.
_CANCELLED = {
    "before": _LIVE,
    "after": "d.state || CASE d.answer WHEN 'cancelled' THEN jsonb_build_object('state', 'cancelled') "
    "WHEN 'requested' THEN jsonb_build_object('state', 'running, told to end') ELSE '{}' END",
    "count": "CASE WHEN d.answer IN ('cancelled', 'requested') THEN 1 ELSE 0 END",
}
_CANCEL = acts.audited("livewell.cancel_job(%s)", **_CANCELLED)
_CANCEL_SEEN = acts.audited("livewell.cancel_seen_job(%s, %s)", **_CANCELLED)
_HASTEN = acts.audited(
    "livewell.hasten_job(%s)",
    before=_LIVE,
    after="d.state || CASE WHEN d.answer THEN jsonb_build_object('state', 'ready') ELSE '{}' END",
    count="d.answer::integer",
)
# The first five of them by name, and how many there are.
_LETTERS = (
    "SELECT jsonb_object_agg('job ' || x.id, x.queue || ' ' || x.kind || ', ' || x.reason) FILTER "
    "(WHERE x.place <= 5) AS state, count(*) AS n FROM (SELECT d.id, d.queue, d.kind, d.reason, "
    "row_number() OVER (ORDER BY d.id) AS place FROM livewell.dead_job d WHERE d.id = ANY (%s::bigint[])) x"
)
_FIRST = "SELECT l.state FROM (" + _LETTERS + ") l"  # noqa: S608 - constants of ours
_DISCARD = acts.audited("livewell.discard_dead(%s)", before=_FIRST, count="d.answer")
# What is redriven is ready; if some stayed, nobody knows here which.
_REDRIVEN = (
    "coalesce(%s::jsonb, CASE WHEN d.redriven = d.n THEN (SELECT jsonb_object_agg(k.name, 'ready') "
    "FROM jsonb_object_keys(d.state) AS k (name)) WHEN d.redriven = 0 THEN d.state END)"
)
_REDRIVE = (
    "WITH was AS MATERIALIZED (" + _LETTERS + "), done AS MATERIALIZED (SELECT r.redriven, r.kept, w.state, w.n "  # noqa: S608 - constants of ours
    "FROM was w CROSS JOIN LATERAL livewell.redrive_dead(%s, %s, %s, %s) r) SELECT d.redriven, d.kept, "
    + acts.recorded(
        "d.redriven || ' redriven, ' || d.kept || ' stayed'", before="d.state", after=_REDRIVEN, count="d.redriven"
    )
    + " FROM done d"
)
_MEND = acts.located("livewell.mend_dead(%s, %s::jsonb, %s, %s)")
_IDS_NAMED_MAX = 50  # in a line of the audit
_QUEUE_NAMES_MAX = 20  # in the words for a queue that is not there

LOOK_ROWS = 20_000  # of one look for jobs
COUNT_MAX = 10_000  # up to here a count is exact


@dataclass(frozen=True, slots=True)
class JobPage:
    """A part of the jobs that match.

    rows    without payloads, in the order that was asked for
    looked  how many jobs were looked at
    next    the id after which to go on; None: there is nothing more
    """

    rows: list[Record]
    looked: int
    next: int | None


@dataclass(frozen=True, slots=True)
class JobCount:
    """How many jobs match. is_all: false if there may be more, beyond COUNT_MAX or beyond the look."""

    n: int
    looked: int
    is_all: bool


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

    async def worker(self, worker_id: int) -> Record | None:
        """One worker incarnation; None if it has stopped, or was buried."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.show_worker(%s)", (worker_id,))
        return rows[0] if rows else None

    async def held(self, worker_id: int, *, limit: int = 50) -> list[Record]:
        """What a worker incarnation runs now, the longest first."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.list_held_jobs(%s, %s)", (worker_id, limit))
        return [_with_task(row) for row in rows]

    async def lost(self, worker_id: int, *, limit: int = 50) -> list[Record]:
        """Jobs that were taken back because a worker incarnation died, the latest first."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_lost_jobs(%s, %s)", (worker_id, limit))

    async def limiters(self) -> list[Record]:
        """Every credential of every limiter: what it has used, and what it waits for."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_limiters()")

    async def pause(self, queue: str, *, paused: bool = True) -> bool:
        """Stop (or start) claiming from a queue; False if it was so already."""
        act = acts.line("queues.pause" if paused else "queues.resume", queue, after={"paused": paused})
        [(is_known, _, was)] = await self._database.call(_PAUSE, (queue, queue, paused, *act))
        if not is_known:
            raise UnknownQueue(f"queue {queue!r} is not declared; there are: {await _queue_names(self._database)}")
        if not paused:
            self._nudger.nudge(queue)
        return bool(was["paused"] != paused)

    async def pause_all(self, prefix: str, *, paused: bool, confirmed: int) -> tuple[int, int | None]:
        """Pause or resume all queues whose names begin so; answers how many match, and how many were changed.

        None: they are not as many as were confirmed, and nothing was done.
        """
        params = (acts.origin(), prefix, paused, confirmed, acts.actor())
        [(n, changed)] = await self._database.call(_PAUSE_ALL, params)
        if changed and not paused:
            self._nudger.nudge(EVERY)
        return n, changed

    async def count_queues(self, prefix: str) -> tuple[int, int]:
        """How many queues have names that begin so, and how many of them are paused; counted to 10,001."""
        [(n, paused)] = await self._database.call("SELECT n, paused FROM livewell.count_queues(%s)", (prefix,))
        return n, paused

    async def jobs(
        self, *, queue: str | None = None, state: str | None = None, after: int = 0, limit: int = 50
    ) -> list[Record]:
        """A page of live jobs by id. Fewer than `limit` are the last ones."""
        if state is not None and state not in LIVE:
            raise InvalidOption(f"state {state!r}: allowed are {', '.join(LIVE)}")
        return (await self.find(JobFilter(queue=queue, state=state), after=after, limit=limit, looks=None)).rows

    async def find(
        self,
        wanted: JobFilter,
        *,
        after: int = 0,
        newest: bool = False,
        limit: int = 50,
        looks: int | None = 1,
    ) -> JobPage:
        """Jobs that match, live or ended, by id.

        One look is at most LOOK_ROWS jobs and one short statement. After `looks` of them the page
        is answered as it is; with None it is full or the last one.
        """
        rows: list[Record] = []
        looked, place, left = 0, after, looks
        while True:
            found = await _look(self._database, wanted, place, newest=newest, limit=limit - len(rows))
            rows += found.rows
            looked += found.looked
            left = None if left is None else left - 1
            if found.next is None or len(rows) >= limit or left == 0:
                return JobPage(rows, looked, found.next)
            place = found.next

    async def count(self, wanted: JobFilter) -> JobCount:
        """How many match, from one look."""
        query = "SELECT n, looked, is_all FROM livewell.count_jobs(%s::jsonb, %s, %s)"
        rows = await self._database.call(query, (json.dumps(wanted.document()), COUNT_MAX, LOOK_ROWS))
        return JobCount(*rows[0])

    async def job(self, job_id: int) -> Record:
        """One job, wherever it is now, with the errors of its attempts and the traceback of the last."""
        rows = await self._database.call_dicts(_JOB, (job_id,))
        if not rows:
            raise JobNotFound(
                f"job {job_id}: no live job, dead letter or finished job has that id (history is kept for some days)"
            )
        record = _with_task(rows[0])
        record["errors"] = [{**one, "at": datetime.fromisoformat(one["at"])} for one in record["errors"]]
        return record

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

    async def cancel(self, job_id: int, *, seen: str | None = None) -> Cancelled:
        """Cancel a waiting job at once, or ask the worker of a running one.

        seen: the state in which the caller saw it; in another one by now, nothing is done.
        """
        if seen is None:
            rows = await self._database.call(_CANCEL, (job_id, job_id, *acts.line("jobs.cancel", f"job {job_id}")))
        else:
            act = acts.line("jobs.cancel", f"job {job_id}", seen=seen)
            rows = await self._database.call(_CANCEL_SEEN, (job_id, job_id, seen, *act))
        answer = Cancelled(rows[0][0])
        if answer is Cancelled.REQUESTED:
            self._nudger.nudge(CANCEL)
        return answer

    async def retry(self, job_id: int) -> bool:
        """Run a delayed job now, or redrive a dead letter; False when it is neither."""
        record = await self.job(job_id)
        if record["state"] == JobState.FAILED:
            return (await self.redrive([job_id]))[0] == 1
        act = acts.line("jobs.retry", f"job {job_id}")
        done = bool((await self._database.call(_HASTEN, (job_id, job_id, *act)))[0][0])
        if done:
            self._nudger.nudge(record["queue"])
        return done

    async def links(self, job_id: int) -> Record:
        """What a job belongs to: batch, trace, worker, deadline; empty if it is gone."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.show_job_links(%s)", (job_id,))
        return rows[0] if rows else {}

    async def batch(self, batch_id: int) -> Record:
        """One batch with its counts, and the job that follows it as `follow`, or None."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.show_batch(%s)", (batch_id,))
        if not rows:
            raise JobNotFound(f"batch {batch_id}: there is none with that id (ended ones are kept for some days)")
        follow = await self._database.call_dicts("SELECT * FROM livewell.show_follow_up(%s)", (batch_id,))
        return {**rows[0], "follow": _with_task(follow[0]) if follow else None}

    async def batches(self, *, before: int | None = None, limit: int = 50) -> list[Record]:
        """A page of batches, the newest first.

        An open batch counts 1,000 of its jobs at most; `remaining_is_more`: there are more.
        """
        return await self._database.call_dicts("SELECT * FROM livewell.list_batches(%s, %s)", (before or None, limit))

    async def find_queues(self, prefix: str, *, limit: int = 50) -> list[Record]:
        """Queues whose names begin so, as the system state has them."""
        rows = await self._database.call("SELECT livewell.find_queues(%s, %s)", (prefix, limit))
        return list(rows[0][0])

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
        answer = (await self._database.call(_MEND, (acts.origin(), job_id, text, seen, acts.actor())))[0][0]
        if answer == "unknown":
            raise JobNotFound(f"{what}: there is none with that id; list them with: livewell dead list")
        if answer == "changed":
            raise InvalidOption(f"{what}: somebody else changed its payload meanwhile; look at it again")

    async def discard(self, ids: Sequence[int]) -> int:
        """Delete dead letters for good; answers how many there were."""
        named = list(ids)
        rows = await self._database.call(_DISCARD, (named, named, *_letters("dead.discard", ids)))
        return int(rows[0][0])

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
        rows = await self._database.call(_REDRIVE, (ids, ids, queue, task, limit, *act))
        if rows[0][0]:
            self._nudger.nudge(EVERY)
        return rows[0][0], rows[0][1]


def _letters(action: str, ids: Sequence[int] | None, **others: str | None) -> acts.Line:
    """The line of the audit for an act on dead letters."""
    named: dict[str, Any] = {name: value for name, value in others.items() if value is not None}
    if ids is None:
        return acts.line(action, ", ".join(f"{name} {value}" for name, value in named.items()) or "all", **named)
    subject = f"job {ids[0]}" if len(ids) == 1 else f"{len(ids)} dead letters"
    return acts.line(action, subject, ids=list(ids[:_IDS_NAMED_MAX]), **named)


def _with_task(row: Record) -> Record:
    """The column is called kind, and a task is called task everywhere else."""
    return {"task" if name == "kind" else name: value for name, value in row.items()}


async def _look(database: Database, wanted: JobFilter, after: int, *, newest: bool, limit: int) -> JobPage:
    """One bounded look: ids and rows in one statement, of one instant."""
    document = json.dumps(wanted.document())
    found = await database.call_dicts(_FIND, (document, after, newest, limit, LOOK_ROWS, wanted.state))
    looked, place = found[0]["looked"], found[0]["next"]
    rows = [_with_task(row) for row in found if row["id"] is not None]
    for row in rows:
        del row["looked"], row["next"]
    return JobPage(rows, looked, place)


async def _queue_names(database: Database) -> str:
    """Some of the queues that there are, in words."""
    query = "SELECT q.name FROM livewell.queue q ORDER BY q.name LIMIT %s"
    names = [str(row[0]) for row in await database.call(query, (_QUEUE_NAMES_MAX + 1,))]
    more = " and more" if len(names) > _QUEUE_NAMES_MAX else ""
    return (", ".join(names[:_QUEUE_NAMES_MAX]) or "none") + more
