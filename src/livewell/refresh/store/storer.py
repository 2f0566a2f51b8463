"""Gather what the refreshes of a process bring, and store many in one transaction.

    idle ──a call's results──▶ flushing ──answer──▶ each caller told ──more came meanwhile──▶ flushing
                                  ├──22…, 23…: something in it cannot be written──▶ one by one; the bad one fails alone
                                  ├──deadlock, serialisation failure──▶ the same once more; not an attempt (R17)
                                  └──no answer──▶ the same once more: if it had committed, all of it is fenced now, and nothing is written twice

Self-clocked: an idle storer flushes at once; a busy one rests after each flush for as long as that
took (20 ms at most) and takes whatever came meanwhile. So a lone refresh waits for nobody, and a
thousand a second share some fifty commits: a flush costs 2.5 ms of processor before its first
result, and 0.2 ms for each. The results of one call stay together, because its first job says how
the call went; never two results for one key. What waits is bounded by the worker's slots: each
caller waits for its answer before its slot is free.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import orjson

from livewell.db import Database
from livewell.errors import DatabaseConflict, DatabaseError, DatabaseUnavailable, InvalidOption, InvalidPayload
from livewell.model import Blame
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure
from livewell.refresh.store.entry import Entry
from livewell.telemetry.secret_forms import secrets_of

_STORE = "SELECT job_fence, answer, reason, at FROM livewell.store_refreshes(%s, %s::jsonb)"
_TRIES = 8
_PAUSE_SECONDS = 0.02
_REST_SECONDS_MAX = 0.02


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one result.

    `answer` is stored, unchanged, older, missing, type_changed, rejected (with its reason) or fenced.
    """

    answer: str
    reason: str | None


@dataclass(slots=True, eq=False)
class _Group:
    """The results of one call, and who waits for the answers."""

    worker: int
    entries: Sequence[Entry]
    done: asyncio.Future[list[Stored]] = field(repr=False)

    @property
    def keys(self) -> set[tuple[str, str]]:
        return {(entry.type, entry.key) for entry in self.entries}


class Storer:
    """The only way from an answer to the database. One per process, on a connection of its own."""

    def __init__(
        self, database: Database, *, batch_max: int, on_time: Callable[[datetime], None], on_changed: Callable[[], None]
    ) -> None:
        self._link = database.link()
        self._batch_max = batch_max
        self._on_time = on_time
        self._on_changed = on_changed
        self._waiting: deque[_Group] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self.flushes = 0
        self.stored = 0
        self.single = 0  # results that were sent alone because something in their flush could not be written

    async def store(self, worker: int, entries: Sequence[Entry]) -> list[Stored]:
        """Store the results of one call; answers when they are committed.

        Raises DatabaseUnavailable when the database stays away.
        """
        group = _Group(worker, entries, asyncio.get_running_loop().create_future())
        self._waiting.append(group)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush(), name="store")
        return await group.done

    async def close(self) -> None:
        """Give the connection back; whoever still waits is told that the database is away."""
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.wait([self._flushing], timeout=1)
        for group in self._waiting:
            if not group.done.done():
                group.done.set_exception(DatabaseUnavailable("store: the worker stopped"))
        self._waiting.clear()
        await self._link.close()

    async def _flush(self) -> None:
        await asyncio.sleep(0)  # whoever is ready in this turn of the loop comes along
        while self._waiting:
            groups = self._take()
            began = time.monotonic()
            try:
                await self._send(groups)
            except (DatabaseError, InvalidPayload, InvalidOption) as error:
                _tell(groups, error)
            except BaseException as error:
                _tell(groups, DatabaseUnavailable(f"store: {type(error).__name__}"))
                raise
            if len(groups) > 1 and len(self._waiting) < self._batch_max:
                await asyncio.sleep(min(_REST_SECONDS_MAX, time.monotonic() - began))

    def _take(self) -> list[_Group]:
        """As many as fit, of one worker incarnation, no key twice; the rest stays in order."""
        taken: list[_Group] = []
        later: list[_Group] = []
        keys: set[tuple[str, str]] = set()
        n = 0
        while self._waiting and n < self._batch_max:
            group = self._waiting.popleft()
            if group.done.done():
                continue  # its caller was cancelled
            if taken and (
                group.worker != taken[0].worker or keys & group.keys or n + len(group.entries) > self._batch_max
            ):
                later.append(group)
                if len(later) >= 10:
                    break
                continue
            taken.append(group)
            keys |= group.keys
            n += len(group.entries)
        self._waiting.extendleft(reversed(later))
        return taken

    async def _send(self, groups: Sequence[_Group]) -> None:
        if not groups:
            return
        entries = [entry for group in groups for entry in group.entries]
        try:
            answers = await self._call(groups[0].worker, entries)
        except (DatabaseError, InvalidPayload, InvalidOption) as error:
            if not _unwritable(error):
                raise
            answers = {}
            for entry in entries:
                self.single += 1
                answers |= await self._alone(groups[0].worker, entry)
        for group in groups:
            if not group.done.done():
                group.done.set_result([answers.get(entry.fence, Stored("fenced", None)) for entry in group.entries])
        if any(stored.answer not in ("fenced", "type_changed") for stored in answers.values()):
            self._on_changed()

    async def _alone(self, worker: int, entry: Entry) -> dict[int, Stored]:
        """One result; if it still cannot be written, that it could not is what is stored."""
        try:
            return await self._call(worker, [entry])
        except (DatabaseError, InvalidPayload, InvalidOption) as error:
            if not _unwritable(error):
                raise
            refused = Failure(Reason.OUT_OF_BOUNDS, _words(error, entry), Blame.DATA)
            return await self._call(worker, [replace(entry, result=refused)])

    async def _call(self, worker: int, entries: Sequence[Entry]) -> dict[int, Stored]:
        for left in reversed(range(_TRIES)):
            try:
                if left < _TRIES - 1:
                    await self._link.call("SELECT 1")  # connecting again may take long, and the results age meanwhile
                rows = await self._link.call(_STORE, (worker, _written(entries)))
                break
            except (DatabaseConflict, DatabaseUnavailable) as error:
                if left == 0:
                    raise
                # A conflict is over by now; an outage may take a while. Within the lease the jobs
                # are still ours.
                grown = 0 if isinstance(error, DatabaseConflict) else 2 ** (_TRIES - left)
                await asyncio.sleep(_PAUSE_SECONDS * (grown + 1) * random.uniform(0.5, 1))  # noqa: S311 - jitter
        self.flushes += 1
        self.stored += len(entries)
        if rows:
            self._on_time(rows[0][3])
        return {fence: Stored(answer, reason) for fence, answer, reason, _ in rows}


def _written(entries: Sequence[Entry]) -> str:
    """As JSON.

    The age of each is taken now, when it is sent: a result that waited out an outage has aged.
    """
    now = time.monotonic()
    return orjson.dumps([entry.document(now) for entry in entries]).decode()


def _unwritable(error: Exception) -> bool:
    """Something in the results does not fit its column or breaks a constraint.

    Nobody else's does.
    """
    return isinstance(error, InvalidPayload | InvalidOption) or (
        isinstance(error, DatabaseError) and error.sqlstate[:2] in ("22", "23")
    )


def _words(error: Exception, entry: Entry) -> str:
    """What the database said, without the lines about values.

    Its first may hold one, but not our credential.
    """
    state = getattr(error, "sqlstate", "") or "22"
    said = secrets_of(os.environ.get(entry.credential or "", "")).hide(str(error).splitlines()[0], 200)
    return f"the table refused it ({state}): {said}"


def _tell(groups: Sequence[_Group], error: Exception) -> None:
    for group in groups:
        if not group.done.done():
            group.done.set_exception(error)
