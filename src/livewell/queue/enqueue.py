"""Enqueue one or many, in the caller's transaction or in our own.

Every job has an id the client chose from a block it reserved. So when a commit's answer is lost, the same call can simply be made again: ids that were accepted the
first time are recognised, wherever the job is by then (live, finished or dead).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from livewell.db import Database, Transaction
from livewell.db.database import Foreign
from livewell.errors import DatabaseConflict, DatabaseUnavailable, InvalidOption
from livewell.model import Answer, Enqueued

_ENQUEUE = "SELECT * FROM livewell.enqueue_jobs(%s::jsonb, %s)"
_BLOCK = 64
_DELAY_SECONDS_MAX = 366 * 86400
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Request:
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
        if self.max_attempts is not None and not 1 <= self.max_attempts <= 100:
            raise InvalidOption(f"attempts {self.max_attempts}: allowed are 1 to 100")
        for name, key in (("unique key", self.unique_key), ("group", self.group_key)):
            if key is not None and (
                not 1 <= len(key.encode(errors="replace")) <= 512 or "\x00" in key or not _encodable(key)
            ):
                raise InvalidOption(f"{name} {key[:40]!r}: 1 to 512 bytes of UTF-8 without NUL are allowed")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Enqueuer:
    """Holds the reserved ids of one client process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next = 0
        self._end = 0

    async def enqueue(self, requests: Sequence[Request], *, tx: Transaction | Foreign | None = None) -> list[Enqueued]:
        """Enqueue all or none; the answers are in the order of the requests."""
        if not requests:
            return []
        limit = self._database.settings.enqueue_batch_max
        if len(requests) > limit:
            raise InvalidOption(f"{len(requests):,} jobs in one call: at most {limit:,} (LIVEWELL_ENQUEUE_BATCH_MAX)")
        for request in requests:
            request.check()
        ids = await self._ids(len(requests))
        if tx is None:
            return await self._on_our_own(ids, requests)
        return await self._settled(ids, requests, tx)

    async def _on_our_own(self, ids: list[int], requests: Sequence[Request]) -> list[Enqueued]:
        """Try again after an unknown outcome: the ids make it safe."""
        again = False
        document = _document(ids, requests)
        for left in reversed(range(_TRIES)):
            try:
                rows = await self._database.call(_ENQUEUE, (document, again))
            except (DatabaseUnavailable, DatabaseConflict) as error:
                if left == 0 or getattr(error, "sqlstate", "") == "57014":
                    raise
                again = True
                continue
            if not any(answer == "vanished" for _, answer, _ in rows):
                return _answers(ids, rows)
            # The live job with our key ended between the insert and the look: ask once more.
            vanished = {asked for asked, answer, _ in rows if answer == "vanished"}
            if left == 0:
                raise DatabaseConflict(
                    f"{len(vanished)} keys were taken and freed again and again; enqueue them once more"
                )
            again = True
        raise AssertionError("the loop returns or raises")

    async def _settled(self, ids: list[int], requests: Sequence[Request], tx: Transaction | Foreign) -> list[Enqueued]:
        document = _document(ids, requests)
        for attempt in range(_TRIES):
            rows = await _fetch(tx, _ENQUEUE, (document, attempt > 0))
            if not any(answer == "vanished" for _, answer, _ in rows):
                return _answers(ids, rows)
        raise DatabaseConflict("a key was taken and freed again and again; run the transaction once more")

    async def _ids(self, n: int) -> list[int]:
        ids: list[int] = []
        while len(ids) < n:
            take = min(n - len(ids), self._end - self._next)
            ids.extend(range(self._next, self._next + take))
            self._next += take
            if len(ids) < n:
                blocks = min(2000, -(-(n - len(ids)) // _BLOCK))
                rows = await self._database.call("SELECT livewell.reserve_job_ids(%s)", (blocks,))
                # Blocks of one call are usually neighbours; where they are, use them as one range.
                starts = [row[0] for row in rows]
                for start in starts[:-1]:
                    ids.extend(range(start, start + min(_BLOCK, n - len(ids))))
                self._next, self._end = starts[-1], starts[-1] + _BLOCK
        return ids


def _document(ids: Sequence[int], requests: Sequence[Request]) -> str:
    return "[" + ",".join(map(_element, ids, requests)) + "]"


def _element(job_id: int, request: Request) -> str:
    options: dict[str, Any] = {"id": job_id, "queue": request.queue, "kind": request.kind}
    if request.unique_key is not None:
        options["unique_key"] = request.unique_key
    if request.group_key is not None:
        options["group_key"] = request.group_key
    if request.lane != 1:
        options["lane"] = request.lane
    if request.priority:
        options["priority"] = request.priority
    if request.delay_seconds:
        options["delay_seconds"] = request.delay_seconds
    if request.run_at is not None:
        options["run_at"] = request.run_at.isoformat()
    if request.max_attempts is not None:
        options["max_attempts"] = request.max_attempts
    return f'{json.dumps(options)[:-1]}, "payload": {request.payload}}}'


def _answers(ids: Sequence[int], rows: Sequence[tuple[Any, ...]]) -> list[Enqueued]:
    other = {asked: job_id for asked, answer, job_id in rows if answer == "merged"}
    return [Enqueued(Answer.MERGED, other[i]) if i in other else Enqueued(Answer.INSERTED, i) for i in ids]


async def _fetch(tx: Transaction | Foreign, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    if isinstance(tx, Transaction):
        return await tx.fetch(query, params)
    cursor: Any = await tx.execute(query, params)
    rows = await cursor.fetchall()
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]
