"""Enqueue one or many, in the caller's transaction or in our own.

Every job has an id the client chose from a block it reserved. So when a commit's answer is lost,
the same call can simply be made again: ids that were accepted the first time are recognised,
wherever the job is by then (live, finished or dead).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from livewell.db import Database, Row, Transaction
from livewell.db.foreign import Foreign, fetch_in
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseConflict, DatabaseUnavailable, InvalidOption
from livewell.loops import backoff_seconds
from livewell.model import Answer, Enqueued, Policy
from livewell.telemetry import tracing

_ENQUEUE = "SELECT * FROM livewell.enqueue_jobs(%s::jsonb, %s)"
_PLAIN = "SELECT livewell.enqueue_plain(%s, %s, %s::text::bigint[], %s::jsonb, %s, %s, %s, %s, %s, %s)"
_ONE = "SELECT livewell.enqueue_one($1, $2, $3, $4::jsonb, $5, $6, $7)"
_BLOCK = 64
_DELAY_SECONDS_MAX = 366 * 86400
_TRIES = 4


class Request(NamedTuple):
    """One job to be enqueued; payload is JSON text."""

    queue: str
    kind: str
    payload: str
    unique_key: str | None = None
    group_key: str | None = None
    lane: int = 1
    priority: int = 0
    delay_seconds: float = 0.0
    run_at: datetime | None = None
    max_attempts: int | None = None
    id: int | None = None
    policy: Policy = Policy.KEEP
    call_key: str | None = None
    batch_id: int | None = None
    units: int | None = None
    trace: str | None = None

    def with_payload(self, payload: str) -> Request:
        """The same with another payload: a third of what _replace() takes."""
        return Request._make((*self[:2], payload, *self[3:]))

    @property
    def plain(self) -> bool:
        """Nothing but a payload sets it apart from others of its kind."""
        return (
            self.id is None and self._keyless and self.batch_id is None and self.units is None and self.trace is None
        )  # written out: 0.3 µs instead of 2.5, and every enqueue asks

    @property
    def _keyless(self) -> bool:
        return self.unique_key is None and self.group_key is None and self.call_key is None

    @property
    def ready_at_once(self) -> bool:
        """Plain, and due now."""
        return self.plain and not self.delay_seconds and self.run_at is None

    def document(self, job_id: int | None = None) -> str:
        """The job as enqueue_jobs takes it, in JSON."""
        options: dict[str, Any] = {"queue": self.queue, "kind": self.kind}
        given = {
            "id": job_id,
            "unique_key": self.unique_key,
            "group_key": self.group_key,
            "call_key": self.call_key,
            "batch_id": self.batch_id,
            "units": self.units,
            "trace": self.trace,
            "max_attempts": self.max_attempts,
            "policy": None if self.policy is Policy.KEEP else self.policy.value,
            "lane": None if self.lane == 1 else self.lane,
            "priority": self.priority or None,
            "delay_seconds": self.delay_seconds or None,
            "run_at": None if self.run_at is None else self.run_at.isoformat(),
        }
        options |= {name: value for name, value in given.items() if value is not None}
        return f'{json.dumps(options)[:-1]}, "payload": {self.payload}}}'

    def check(self) -> None:
        """Refuse what the database would refuse, with the value and what is allowed."""
        if not 0 <= self.delay_seconds <= _DELAY_SECONDS_MAX:
            raise InvalidOption(f"delay {self.delay_seconds!r} s: allowed are 0 to {_DELAY_SECONDS_MAX} (366 days)")
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise InvalidOption(f"run_at {self.run_at.isoformat()}: it needs a time zone")
        if not -100 <= self.priority <= 100:
            raise InvalidOption(
                f"priority {self.priority}: allowed are -100 to 100 (a point is worth a minute of waiting)"
            )
        if self.lane not in (0, 1):
            raise InvalidOption(f"lane {self.lane}: allowed are 0 (people wait) and 1 (background)")
        if self.id is not None and self.id < 1:
            raise InvalidOption(f"id {self.id}: take it from app.reserve_ids()")
        if self.max_attempts is not None and not 1 <= self.max_attempts <= 100:
            raise InvalidOption(f"attempts {self.max_attempts}: allowed are 1 to 100")
        if self.units is not None and not 0 <= self.units <= 2**62:
            raise InvalidOption(f"units {self.units}: 0 or more are allowed")
        self._check_keys()

    def _check_keys(self) -> None:
        if self.policy is not Policy.KEEP and self.unique_key is None:
            raise InvalidOption(f"policy {self.policy}: it needs a unique_key")
        if self._keyless:
            return
        for name, key in (
            ("unique key", self.unique_key),
            ("group", self.group_key),
            ("call key", self.call_key),
        ):
            if key is not None and not isinstance(key, str):
                raise InvalidOption(f"{name} {key!r}: it must be text")
            if key is not None and (
                not 1 <= len(key.encode(errors="replace")) <= 512 or "\x00" in key or not _encodable(key)
            ):
                size = len(key.encode(errors="replace"))
                raise InvalidOption(
                    f"{name} {key[:40]!r} ({size:,} bytes): 1 to 512 bytes of UTF-8 without NUL are allowed"
                )


class Alike(NamedTuple):
    """Jobs that are alike in everything but their payload: how many, and the payloads.

    The payloads are a JSON array.
    """

    n: int
    payloads: str


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Enqueuer:
    """Holds the reserved ids of one client process."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger
        # For single jobs, one after the other: past the pool a call takes 70 µs less. While it is
        # busy they go through the pool.
        self._link = database.link()
        self._next = 0
        self._end = 0

    async def enqueue(self, requests: Sequence[Request], *, tx: Transaction | Foreign | None = None) -> list[Enqueued]:
        """Enqueue all or none; the answers are in the order of the requests."""
        if not requests:
            return []
        self.bound(len(requests))
        for request in requests:
            request.check()
        with tracing.span(f"enqueue {requests[0].kind}", "PRODUCER", jobs=len(requests)):
            if (trace := tracing.carried()) is not None:
                requests = [request._replace(trace=trace) for request in requests]
            return await self._enqueue(requests, tx)

    async def _enqueue(self, requests: Sequence[Request], tx: Transaction | Foreign | None) -> list[Enqueued]:
        if tx is None and len(requests) == 1 and requests[0].ready_at_once:
            return [await self._enqueue_one(requests[0])]
        fresh = iter(await self._ids(sum(request.id is None for request in requests)))
        ids = [next(fresh) if request.id is None else request.id for request in requests]
        # A caller that brings ids may have sent them before.
        again = any(request.id is not None for request in requests)
        if tx is None:
            answers = await self._on_our_own(ids, requests, again=again)
        else:
            answers = await self._in_transaction(ids, requests, tx, again=again)
        self._nudge({request.queue for request in requests}, tx)
        return answers

    async def enqueue_alike(
        self, one: Request, alike: Alike, *, tx: Transaction | Foreign | None = None
    ) -> list[Enqueued]:
        """Enqueue plain jobs that differ from `one` only in their payload.

        In the order of the payloads. They carry no trace: thousands below one span help nobody.
        """
        self.bound(alike.n)
        one.check()
        ids = await self._ids(alike.n)
        await self._enqueue_plain(one, ids, alike.payloads, tx, tries=_TRIES)
        self._nudge({one.queue}, tx)
        return list(map(Enqueued, repeat(Answer.INSERTED), ids))

    async def _enqueue_one(self, one: Request) -> Enqueued:
        if self._next < self._end:
            job_id = self._next
            self._next += 1
        else:
            [job_id] = await self._ids(1)
        if self._link.busy:
            await self._enqueue_plain(one, [job_id], f"[{one.payload}]", None, tries=_TRIES)
            self._nudger.nudge(one.queue)
            return Enqueued(Answer.INSERTED, job_id)
        attempts = None if one.max_attempts is None else str(one.max_attempts)
        params = (one.queue, one.kind, str(job_id), one.payload, str(one.lane), str(one.priority), attempts)
        nudge = self._nudger.ride(one.queue) if self._link.takes_riders else None
        try:
            await self._link.ask(_ONE, params, then=nudge)
        except (DatabaseUnavailable, DatabaseConflict):
            nudge = None
            await _pause(_TRIES - 1)
            await self._enqueue_plain(one, [job_id], f"[{one.payload}]", None, tries=_TRIES - 1)
        if nudge is None:
            self._nudger.nudge(one.queue)
        else:
            self._nudger.tell(one.queue)
        return Enqueued(Answer.INSERTED, job_id)

    def _nudge(self, queues: set[str], tx: Transaction | Foreign | None) -> None:
        """Nudge the queues after the commit.

        Nobody tells us of the commit of a foreign transaction, so its jobs wait for the next poll.
        """
        for queue in queues:
            if tx is None:
                self._nudger.nudge(queue)
            elif isinstance(tx, Transaction):
                tx.on_commit.append(partial(self._nudger.nudge, queue))

    async def _enqueue_plain(
        self, one: Request, ids: Sequence[int], payloads: str, tx: Transaction | Foreign | None, *, tries: int
    ) -> None:
        params = [
            one.queue,
            one.kind,
            f"{{{','.join(map(str, ids))}}}",
            payloads,
            one.lane,
            one.priority,
            one.delay_seconds or None,
            one.run_at,
            one.max_attempts,
        ]
        if tx is not None:
            await fetch_in(tx, _PLAIN, [*params, False])
            return
        for left in reversed(range(tries)):
            _, certain = await self._try(_PLAIN, [*params, left < _TRIES - 1], left=left)
            if certain:
                return

    def bound(self, n: int) -> None:
        """Refuse more jobs than one statement may carry."""
        limit = self._database.settings.enqueue_batch_max
        if n > limit:
            raise InvalidOption(f"{n:,} jobs in one call: at most {limit:,} (LIVEWELL_ENQUEUE_BATCH_MAX)")

    async def close(self) -> None:
        """Give the connection back."""
        await self._link.close()

    async def reserve(self, n: int) -> list[int]:
        """Ids for n jobs that will be enqueued with them, and can be sent again after an unknown outcome."""
        return await self._ids(n)

    async def _on_our_own(self, ids: list[int], requests: Sequence[Request], *, again: bool) -> list[Enqueued]:
        """Send it again after an unknown outcome, or when a key was freed just now.

        The ids make it safe.
        """
        document = _document(ids, requests)
        for left in reversed(range(_TRIES)):
            rows, certain = await self._try(_ENQUEUE, (document, again), left=left)
            if certain and not _vanished(rows):
                return _answers(ids, rows)
            again = True
        raise DatabaseConflict("a key was taken and freed again and again; enqueue once more")

    async def _in_transaction(
        self, ids: list[int], requests: Sequence[Request], tx: Transaction | Foreign, *, again: bool
    ) -> list[Enqueued]:
        document = _document(ids, requests)
        for attempt in range(_TRIES):
            rows = await fetch_in(tx, _ENQUEUE, (document, again or attempt > 0))
            if not _vanished(rows):
                return _answers(ids, rows)
        raise DatabaseConflict("a key was taken and freed again and again; run the transaction once more")

    async def _try(self, query: str, params: Sequence[Any], *, left: int) -> tuple[list[Row], bool]:
        """Make one try.

        False when its outcome is unknown and another try may follow, after a pause that grows.
        """
        try:
            return await self._database.call(query, params), True
        except (DatabaseUnavailable, DatabaseConflict):
            if left == 0:
                raise
            await _pause(left)
            return [], False

    async def _ids(self, n: int) -> list[int]:
        ids: list[int] = []
        while len(ids) < n:
            take = min(n - len(ids), self._end - self._next)
            ids.extend(range(self._next, self._next + take))
            self._next += take
            if len(ids) < n:
                await self._reserve_blocks(ids, n)
        return ids

    async def _reserve_blocks(self, ids: list[int], n: int) -> None:
        """Fill ids from new blocks; what is left of the last one is for the next call."""
        blocks = min(2000, -(-(n - len(ids)) // _BLOCK))
        for left in reversed(range(_TRIES)):
            rows, certain = await self._try("SELECT livewell.reserve_job_ids(%s)", (blocks,), left=left)
            if certain:
                break
        starts = [row[0] for row in rows]
        for start in starts[:-1]:
            ids.extend(range(start, start + min(_BLOCK, n - len(ids))))
        self._next, self._end = starts[-1], starts[-1] + _BLOCK


async def _pause(left: int) -> None:
    """Before the next try, with so many tries left; it grows."""
    await asyncio.sleep(backoff_seconds(_TRIES - left))


def _vanished(rows: Sequence[Row]) -> bool:
    return any(answer == "vanished" for _, answer, _ in rows)


def _document(ids: Sequence[int], requests: Sequence[Request]) -> str:
    return "[" + ",".join(request.document(job_id) for job_id, request in zip(ids, requests, strict=True)) + "]"


def _answers(ids: Sequence[int], rows: Sequence[tuple[Any, ...]]) -> list[Enqueued]:
    other = {asked: Enqueued(Answer(answer), job_id) for asked, answer, job_id in rows if answer != "known"}
    return [other.get(i) or Enqueued(Answer.INSERTED, i) for i in ids]
