"""Keep our lease alive, and notice when it is no longer ours.

    waiting ──heartbeat due──▶ asking the loop ──snapshot──▶ renewing ──alive──▶ waiting
                                   │                            ├──row gone──▶ buried: drop everything, register anew
                                   └──no answer: the loop       └──database away──▶ waiting (a late renewal is valid while the row exists)
                                      hangs, so no renewal

The keeper has its own thread and its own connection: neither a full pool nor a busy loop delays it.
But it renews only what the event loop has just described, so a worker whose loop hangs loses its
lease although this thread is well. Every fifth renewal, and after a claim without an answer, it
also says which fences we know; the database hands the other jobs back. It reports what upstreams
said while the database was away before it renews the lease (limits/walls.py).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from livewell.db import Database
from livewell.db.link import Link
from livewell.errors import DatabaseError
from livewell.limits.walls import Wall, Walls, tell_all
from livewell.queue.worker.holding import Snapshot

log = structlog.get_logger("livewell.keeper")

_RENEW = "SELECT * FROM livewell.renew_worker(%s, %s::bigint[], %s::bigint[], %s::float8[])"
_RECONCILE = "SELECT livewell.reconcile_jobs(%s, %s::bigint[], %s)"
_RECONCILE_EVERY = 5
# Six thirds of a lease, each really waited: others have long taken over, and only a new process can
# help this one. Counted, not measured from the last answer: a process that was frozen (SIGSTOP, a
# paused machine) has missed once, however long it was.
_HANG_MISSES = 6


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a renewal told us."""

    snapshot: Snapshot
    alive: bool
    mark: int
    cancel: list[int]
    drain: bool
    handed_back: int


class Keeper:
    """Renews until stopped. Callbacks run in the event loop's thread."""

    def __init__(
        self,
        database: Database,
        *,
        snapshot: Callable[[], Snapshot],
        on_renewed: Callable[[Renewed], None],
        on_hang: Callable[[], None] | None = None,
        walls: Walls,
    ) -> None:
        self._database = database
        self._settings = database.settings
        self._snapshot = snapshot
        self._on_renewed = on_renewed
        self._on_hang = on_hang
        self._walls = walls
        self._unanswered = 0
        self._main = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="livewell-keeper", daemon=True)
        self._stopping = threading.Event()
        self._soon = threading.Event()
        self._reconcile = threading.Event()
        self.ended = asyncio.Event()  # the thread died of something nobody foresaw
        self.renewals = 0
        self.missed = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def beat_soon(self, *, reconcile: bool = False) -> None:
        """Do not wait for the next heartbeat."""
        if reconcile:
            self._reconcile.set()
        self._soon.set()

    async def close(self) -> None:
        """Stop renewing. Bounded by the deadline of one call."""
        self._stopping.set()
        self._soon.set()
        await asyncio.to_thread(self._thread.join, self._settings.call_timeout_seconds + 1)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        finally:
            # Without a heartbeat this worker would be buried again and again, each time with what
            # it holds.
            if not self._stopping.is_set():
                self._main.call_soon_threadsafe(self.ended.set)

    async def _beat(self) -> None:
        link = self._database.link(seconds=min(self._settings.call_timeout_seconds, self._settings.lease_seconds / 3))
        beats = 0
        while not self._stopping.is_set():
            answer = self._ask_the_loop()
            if answer is not None and answer[0].worker:
                beats += 1
                if beats % _RECONCILE_EVERY == 0:
                    self._reconcile.set()
                await self._renew(link, *answer)
            # A thread's wait, not the loop's: this loop has nothing else to do.
            self._soon.wait(self._settings.heartbeat_seconds)
            self._soon.clear()
        await link.close()

    def _ask_the_loop(self) -> tuple[Snapshot, tuple[Wall, ...]] | None:
        """The event loop's own answer is the proof that it turns.

        None within a third of the lease means it hangs.
        """
        answer: concurrent.futures.Future[tuple[Snapshot, tuple[Wall, ...]]] = concurrent.futures.Future()

        def give() -> None:
            if answer.set_running_or_notify_cancel():
                answer.set_result((self._snapshot(), self._walls.pending()))

        try:
            self._main.call_soon_threadsafe(give)
            described = answer.result(timeout=self._settings.lease_seconds / 3)
        except concurrent.futures.TimeoutError:
            answer.cancel()
            self.missed += 1
            self._unanswered += 1
            log.warning("the event loop hangs; the lease is not renewed", missed=self.missed)
            if self._on_hang is not None and self._unanswered >= _HANG_MISSES:
                self._on_hang()
            return None
        except RuntimeError:  # the loop is closed: the process ends
            self._stopping.set()
            return None
        self._unanswered = 0
        return described

    async def _renew(self, link: Link, snapshot: Snapshot, walls: tuple[Wall, ...]) -> None:
        try:
            # First: after a restart of the database our renewal says that we have nothing more to
            # report.
            await tell_all(link.call, walls)
            rows = await link.call(
                _RENEW, (snapshot.worker, snapshot.started_ids, snapshot.started_fences, snapshot.timeouts_seconds)
            )
            alive, mark, cancel, drain = rows[0]
            handed_back = 0
            if alive and self._reconcile.is_set():
                rows = await link.call(_RECONCILE, (snapshot.worker, snapshot.known_fences, snapshot.mark))
                handed_back = rows[0][0]
                self._reconcile.clear()
        except (DatabaseError, MemoryError, OSError) as error:
            self.missed += 1
            log.warning("renewal failed", error=str(error), missed=self.missed)
            return
        self.renewals += 1
        renewed = Renewed(snapshot, alive, mark, cancel, drain, handed_back)
        try:
            self._main.call_soon_threadsafe(self._walls.told, walls)
            self._main.call_soon_threadsafe(self._on_renewed, renewed)
        except RuntimeError:
            self._stopping.set()
