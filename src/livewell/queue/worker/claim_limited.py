"""Claim from limited queues: only what may be called now, and only what can start at once.

    waiting ──due, and a place is free──▶ asking ──jobs──▶ started the moment they arrive
       ▲                                    └──none: why, and how long it will take──┐
       └──────────────── a nudge, a free place, the poll interval, that time ◀──────┘

Nothing is claimed ahead: a permit is good for a second or so from before it was asked for, and a
job that waited in a buffer would call too late. All limited queues of a worker share this one loop
and its connection; the queue that has been due longest is asked first.

A name that ends with a star (refresh.*) stands for every queue that begins so, also for those that
are declared while the worker runs: a nudge for one makes it look at once, otherwise it is found
within ten seconds. Such queues are claimed here, limited or not.

A worker does not claim jobs that it could not call. Of a limiter's credentials it uses those it
has, and it leaves a queue for which it has none to other workers (can_use). The log and the
worker's row say which are missing.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Self

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError, DatabaseUnavailable
from livewell.limits.walls import BandwidthWall, Walls, tell_all
from livewell.loops import Waker, backoff_seconds
from livewell.model import Blame, Claimed, Failed, Outcome, Permit
from livewell.queue.nudges import EVERY
from livewell.queue.worker.holding import Held, Holding
from livewell.queue.worker.slots import Slots

log = structlog.get_logger("livewell.worker")

_CLAIM = "SELECT * FROM livewell.claim_limited(%s, %s, %s, %s, %s, %s, %s)"
_LACKS = "SELECT livewell.report_lacks(%s, %s)"
_LIMITED = """
    SELECT q.name, coalesce(q.concurrency, q.group_limit, l.concurrency, l.per_key) IS NOT NULL, l.name,
           ARRAY(SELECT c.name FROM livewell.limiter_credential c WHERE c.limiter = l.name AND c.active AND c.name <> '' ORDER BY c.name)
    FROM livewell.queue q LEFT JOIN livewell.limiter l ON l.name = q.limiter
    WHERE q.name = ANY (%s) AND (q.concurrency IS NOT NULL OR q.group_limit IS NOT NULL OR q.limiter IS NOT NULL)
       OR EXISTS (SELECT FROM unnest(%s::text[]) AS p WHERE starts_with(q.name, p))"""
_JOB = slice(1, 1 + len(Claimed._fields))
_WAIT_SECONDS_MAX = 30.0  # limits may be raised, and budgets reset, sooner than the database foresaw
_SPREAD_SECONDS = (0.002, 0.05)  # after one claim that came to nothing, and at most
_LOOK_SECONDS = 10.0  # how often it looks which queues are limited
_RESTART_SECONDS = 0.25  # how often it asks whether all workers have reported
_STRANGERS_MAX = 1000  # names that fit a pattern and are no queues


class LimitedRow(NamedTuple):
    """One row of claim_limited: a job and its permit, or what there is to wait for."""

    answer: str  # claimed, wait, buried
    claimed: Claimed
    call: int
    call_key: str | None
    credential: str
    permit_seconds: float | None
    wait_seconds: float | None
    reason: str | None

    @classmethod
    def read(cls, row: Sequence[Any]) -> Self:
        """Give the columns their names."""
        return cls(row[0], Claimed._make(row[_JOB]), *row[_JOB.stop :])

    def permit(self, sent: float) -> Permit:
        """Its time runs from before the claim was sent."""
        until = None if self.permit_seconds is None else sent + self.permit_seconds
        return Permit(self.call, self.call_key, self.credential, until)


class ClaimLimited:
    """The claimer of limited queues."""

    def __init__(
        self,
        database: Database,
        holding: Holding,
        queues: Sequence[str],
        *,
        shared: AbstractSet[str],
        batches: Mapping[str, int],
        slots: Slots,
        make: Callable[[Claimed, Permit], Held],
        can_use: Callable[[str, str], bool],
        may_claim: Callable[[], bool],
        stopping: Callable[[], bool],
        give_back: Callable[[Sequence[Held], str], None],
        on_suspect: Callable[[int], None],
        on_buried: Callable[[], None],
        on_unknown: Callable[[], None],
        walls: Walls,
    ) -> None:
        self._database = database
        self._link = database.link()
        self._settings = database.settings
        self._holding = holding
        self._queues, self._patterns = divide(queues)
        self._slots = slots
        self._make = make
        self._can_use = can_use  # of this queue, this credential
        self._credentials: dict[str, list[str]] = {}  # by queue, where it has only some of them
        self._lacks: list[str] = []
        self._reported: tuple[int, list[str]] = (0, [])
        self._may_claim = may_claim
        self._stopping = stopping
        self._give_back = give_back
        self._on_suspect = on_suspect
        self._on_buried = on_buried
        self._on_unknown = on_unknown
        self._walls = walls
        self._shared = shared  # queues whose jobs may share a call: ours, whether they are limited or not
        self._kinds = list(batches)
        self._batches = list(batches.values())
        self._due: dict[str, float] = {}  # by queue; monotonic
        self._misses: dict[str, int] = {}  # claims in a row that came to nothing: others wait for the same moment
        self._placed: set[str] = set()  # queues where the end of a call makes room for another
        self._look_at = 0.0
        self._strangers: set[str] = set()
        self._nudged: set[str] = set()  # while we were asking
        self._wake = Waker()
        self._failures = 0

    @property
    def queues(self) -> set[str]:
        """The queues it claims from; ClaimAhead claims from all others."""
        return set(self._due)

    def makes_room(self, queue: str) -> bool:
        """Whether somebody may wait for a call of this queue to end.

        A rate or a budget does not.
        """
        return queue in self._placed

    def nudge(self, queue: str) -> None:
        """There may be work, or room for it."""
        for name in self._due if queue == EVERY else (queue,):
            if name in self._due:
                self._due[name] = 0.0
                self._nudged.add(name)
            elif name.startswith(self._patterns) and name not in self._strangers:
                self._strangers.add(name)
                self._look_at = 0.0  # perhaps declared since we looked; if it is no queue, nudges for it are for others
        self._wake.set()

    def note_wall(self, held: Held, outcome: Outcome | None) -> None:
        """Keep a bandwidth wall until the database knows it.

        The end of the job says it too, if the database is there to hear it.
        """
        permit = held.job.permitted
        if permit is not None and isinstance(outcome, Failed) and outcome.blame is Blame.WALL:
            self._walls.keep(BandwidthWall(held.job.claimed.queue, permit.credential or "", permit.call))

    async def look(self) -> None:
        """Learn which of our queues are limited."""
        rows = await self._database.call(
            _LIMITED, (self._queues, list(self._patterns))
        )  # through the pool: a worker without limited queues needs no connection here
        self._credentials, missing = {}, set[tuple[str, str]]()
        for name, _, limiter, credentials in rows:
            usable = [credential for credential in credentials if self._can_use(name, credential)]
            if len(usable) < len(credentials):
                self._credentials[name] = usable
                missing |= {(limiter, credential) for credential in credentials if credential not in usable}
        without = {name for name, usable in self._credentials.items() if not usable}
        names = {name for name, *_ in rows} - without | (self._shared & set(self._queues)) - without
        self._placed = {name for name, placed, *_ in rows if placed}
        await self._tell_lacks(sorted(missing), sorted(without))
        self._due = {name: self._due.get(name, 0.0) for name in names}
        if len(self._strangers) > _STRANGERS_MAX:
            self._strangers.clear()
        self._look_at = time.monotonic() + _LOOK_SECONDS

    async def _tell_lacks(self, missing: Sequence[tuple[str, str]], without: Sequence[str]) -> None:
        """Name what is missing, never what it would hold.

        Once in the log, and in the row of each incarnation.
        """
        lacks = [f"{limiter} {credential}" for limiter, credential in missing]
        if lacks != self._lacks:
            for limiter, credential in missing:
                log.warning(
                    "a credential is missing here: set this environment variable and start again; its calls are "
                    "left to other workers",
                    upstream=limiter,
                    variable=credential,
                    queues_not_claimed=list(without),
                )
            self._lacks = lacks
        worker = self._holding.worker
        if worker and (worker, lacks) != self._reported and (lacks or self._reported[1]):
            await self._database.call(_LACKS, (worker, lacks))
            self._reported = (worker, lacks)

    async def run(self) -> None:
        """Claim until cancelled."""
        while True:
            try:
                await self._turn()
                self._failures = 0
            except DatabaseError as error:
                self._failures += 1
                log.warning("claim of limited jobs failed", error=str(error), failures=self._failures)
                if isinstance(error, DatabaseUnavailable):
                    self._on_unknown()
                await asyncio.sleep(backoff_seconds(self._failures))

    async def close(self) -> None:
        """Give the connection back."""
        await self._link.close()

    async def _turn(self) -> None:
        now = time.monotonic()
        if now >= self._look_at:
            await self.look()
        free = self._slots.free_calls if self._may_claim() else 0
        queue = min(self._due, key=self._due.__getitem__, default=None)
        if queue is None or free <= 0 or self._due[queue] > now:
            await self._rest(self._look_at if queue is None or free <= 0 else min(self._due[queue], self._look_at))
            return
        self._due[queue] = now + self._settings.poll_seconds * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
        await self._claim(queue, free)

    async def _claim(self, queue: str, free: int) -> None:
        holding = self._holding
        worker = holding.worker
        await self.tell_walls()
        holding.limited_mark = holding.mark
        self._nudged.discard(queue)
        sent = time.monotonic()  # before it is sent: what the permits are counted from
        try:
            rows = await self._link.call(
                _CLAIM,
                (
                    worker,
                    queue,
                    free,
                    not holding.all and holding.claim_mark is None,
                    self._kinds,
                    self._batches,
                    self._credentials.get(queue),
                ),
            )
            if worker == holding.worker:  # else buried meanwhile: all of it is somebody else's
                self._take_in(queue, rows, sent)
        finally:
            holding.limited_mark = None

    async def tell_walls(self) -> None:
        """What upstreams have said while the database was away comes before the next call that it would forbid."""
        walls = self._walls.pending()
        if walls:
            await tell_all(self._link.call, walls)
            self._walls.told(walls)

    def _take_in(self, queue: str, rows: Sequence[tuple[Any, ...]], sent: float) -> None:
        calls: dict[int, list[Held]] = defaultdict(list)
        for row in map(LimitedRow.read, rows):
            if row.answer == "buried":
                self._on_buried()
                return
            if row.answer == "wait":
                self._wait(queue, row.wait_seconds, row.reason)
                return
            held = self._make(row.claimed, row.permit(sent))
            if row.claimed.lost:
                self._on_suspect(row.claimed.fence)  # it runs alone
            self._holding.add(held, to_run=False)
            self._holding.mark = max(self._holding.mark, row.claimed.fence)
            calls[row.call].append(held)
        for helds in calls.values():
            helds.sort(key=lambda held: held.job.claimed.fence)
            if self._stopping():
                self._give_back(helds, "the worker stopped before it started")
            elif self._walls.silent:
                self._give_back(helds, "the upstream asked for silence while it was claimed")
            else:
                self._slots.start_call(helds, lambda: self._freed(queue))
        if calls:
            self._misses[queue] = 0
            self._due[queue] = 0.0  # there may be more; if not, it says what to wait for

    def _wait(self, queue: str, seconds: float | None, reason: str | None) -> None:
        """There was nothing: ask again when it said, or when somebody nudges."""
        if reason == "restart":
            self._on_unknown()  # others wait for our heartbeat, too
            self._due[queue] = time.monotonic() + _RESTART_SECONDS * random.uniform(0.5, 1)  # noqa: S311 - jitter
        elif seconds is not None:
            # A fleet that is told the same moment would wake as one, for one of it to get the
            # permit: 20 workers made 1,800 claims a second for 33 calls.
            misses = self._misses[queue] = min(self._misses.get(queue, 0) + 1, 10)
            spread = min(_SPREAD_SECONDS[0] * 2 ** (misses - 1), _SPREAD_SECONDS[1]) if misses > 1 else 0.0
            wait = max(0.001, seconds) + random.uniform(0, spread)  # noqa: S311 - jitter
            self._due[queue] = time.monotonic() + min(_WAIT_SECONDS_MAX, wait)
        if queue in self._nudged:
            self._due[queue] = 0.0

    def _freed(self, queue: str) -> None:
        """One of our calls has ended.

        There is a place here, and perhaps under the queue's limits.
        """
        if self.makes_room(queue):
            self.nudge(queue)
        self._wake.set()

    async def _rest(self, until: float) -> None:
        self._wake.clear()
        await self._wake.wait(max(0.0005, until - time.monotonic()))


def divide(queues: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Names, and the beginnings that patterns such as refresh.* stand for."""
    return (
        [queue for queue in queues if not queue.endswith("*")],
        tuple(queue[:-1] for queue in queues if queue.endswith("*")),
    )
