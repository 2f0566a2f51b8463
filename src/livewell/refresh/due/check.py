"""The due check: what is stale and watched becomes jobs.

Every worker with refresh queues runs one; a singleton lets one of them work.

    waiting ──singleton acquired──▶ dispatching ──nothing due, nothing nudged──▶ sleeping (until something is due, at most a second) ──▶ dispatching
       ▲                                 ├──term lost, or the database away──┐
       └─────────────────────────────────┴───────────────────────────────────┘
    stop: the singleton is released, so that the next worker begins at once

    each turn          livewell.dispatch_due, for every upstream
    every second       the walks of scheduled types go on (walk.py), and the viewers of a page of keys
                       are counted again (livewell.recount_viewers), round and round
    every 5 seconds    jobs that wait though nobody wants them any more are ended (livewell.drop_refreshes)

Everything is decided in SQL under the fence. A turn that was cut off half-way is taken again by the
next holder. The loop turns far too often for a run each time: one row, its pulse, says how often it
turned and when last.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseError, LivewellError
from livewell.loops import Waker, WarningBuffer, surviving
from livewell.queue.nudges import EVERY
from livewell.refresh.due.walk import Walk
from livewell.refresh.nudges import DUE
from livewell.schedule.singleton import Held, Singleton
from livewell.telemetry.measures import DUE_SECONDS

log = structlog.get_logger("livewell.refresh")

_DISPATCH = (
    "SELECT answer, inserted, merged, parked, failed, due, wait_seconds, queues FROM livewell.dispatch_due(%s, %s, %s)"
)
_RECOUNT = "SELECT data_type, key FROM livewell.recount_viewers(%s, %s, %s)"
_DROP = "SELECT livewell.drop_refreshes(%s)"
_DROP_SECONDS = 5.0
_PULSE = "SELECT livewell.record_pulse(%s, %s, %s, %s, %s)"
_PULSE_SECONDS = 5.0
_STATS = (
    "SELECT livewell.add_stats(ARRAY[%s]::text[], ARRAY['livewell.due_check'], ARRAY['done'], "
    "ARRAY[%s]::bigint[], ARRAY[%s]::bigint[])"
)
_STATS_SECONDS = 10.0
# While a dead holder's term lasts, nothing new becomes a job: of a limit of 300 calls a minute, 15
# s had cost up to 75 calls. Renewed every third of it; losing a term by mistake costs nothing.
_LEASE_SECONDS = 5.0


class DueCheck:
    """The loop. Call `wake` for every nudge that the process hears from others."""

    def __init__(
        self,
        database: Database,
        nudger: Nudger,
        *,
        holder: str,
        lease_seconds: float | None = None,
        poll_seconds: float = 1.0,
    ) -> None:
        self._nudger = nudger
        self._link = database.link()
        self.singleton = Singleton(
            self._link,
            DUE,
            holder=holder,
            lease_seconds=lease_seconds or min(database.settings.lease_seconds, _LEASE_SECONDS),
        )
        self._poll_seconds = poll_seconds
        self._waker = Waker()
        self._stopping = False
        self._next: dict[str, float] = {}  # upstream → when it is worth looking, monotonic
        self._wakes = 0
        self._walk_at = 0.0
        self._drop_at = 0.0
        self._counted: dict[str, tuple[str | None, str | None]] = {}  # upstream → where the recount is
        self._holder = holder
        self._pulse_at = 0.0
        self._pulsed = (0, 0)  # turns and jobs that were written already
        self._warnings = WarningBuffer(self._link.call)
        self._checks, self._check_seconds, self._stats_at = 0, 0.0, 0.0  # not yet in the statistics
        self.counts: defaultdict[str, int] = defaultdict(
            int
        )  # turns, inserted, merged, dropped, parked, failed, outages
        self._walk = Walk(self._link, nudger, self.singleton, self.counts)

    def wake(self, name: str) -> None:
        """A client subscribed to something stale, or asked for it: look now."""
        if name in (DUE, EVERY):
            self._wakes += 1
            self._next.clear()
            self._waker.set()

    def stop(self) -> None:
        """Finish the turn under way, release the singleton, end run()."""
        self._stopping = True
        self._waker.set()

    async def run(self) -> None:
        """Until stop(), through any outage of the database."""
        self._nudger.attach(self.wake)
        try:
            while not self._stopping:
                rest = await surviving(self.turn, self._failed, pause_seconds=self._poll_seconds)
                await self._waker.rest(min(rest, self._poll_seconds))
        finally:
            self._nudger.detach(self.wake)
            await self._leave()

    async def turn(self) -> float:
        """One turn, if the singleton is ours.

        Answers for how many seconds there is nothing to do.
        """
        held = await self.singleton.keep()
        if not isinstance(held, Held):
            return min(max(held.wait_seconds, 0.05), self._poll_seconds)
        self.counts["turns"] += 1
        await self._flush()
        now = time.monotonic()
        names = [row[0] for row in await self._link.call("SELECT name FROM livewell.upstream ORDER BY name LIMIT 1000")]
        self._next = {name: at for name, at in self._next.items() if name in names}
        if self._drop_at <= now:
            self._drop_at = now + _DROP_SECONDS
            for name in names:  # first: what is ended takes no place from what is wanted
                self.counts["dropped"] += (await self._link.call(_DROP, (name,)))[0][0]
        for name in names:
            if self._next.get(name, 0.0) <= now and not await self._dispatch(name):
                return 0.0
        if self._walk_at <= now:
            self._walk_at = now + self._poll_seconds
            await self._walk.turn()
            await self._recount(names)
        if self._pulse_at <= now:
            self._pulse_at = now + _PULSE_SECONDS
            await self._pulse()
        return max(0.0, min([self._walk_at, *self._next.values()]) - time.monotonic())

    async def _dispatch(self, upstream: str) -> bool:
        """Look at one upstream; false when the term is over."""
        fence = self.singleton.fence
        if fence is None:
            return False
        began, wakes = time.monotonic(), self._wakes
        rows = await self._link.call(_DISPATCH, (DUE, fence, upstream))
        self._took(upstream, time.monotonic() - began)
        answer, inserted, merged, parked, failed, _, wait_seconds, queues = rows[0]
        if answer == "not_holder":
            self.singleton.lose()
            return False
        for what, n in (("inserted", inserted), ("merged", merged), ("parked", parked), ("failed", failed)):
            self.counts[what] += n
        for queue in queues or ():
            self._nudger.nudge(queue)
        if wakes == self._wakes:  # else something was subscribed meanwhile, which this look may not have seen
            pause_seconds = 60.0 if wait_seconds is None else wait_seconds
            self._next[upstream] = time.monotonic() + min(self._poll_seconds, pause_seconds)
        return True

    async def _recount(self, upstreams: Sequence[str]) -> None:
        """Count the viewers of the next page of each upstream's keys.

        Order under overload goes by what was counted last.
        """
        self._counted = {
            name: (await self._link.call(_RECOUNT, (name, *self._counted.get(name, (None, None)))))[0]
            for name in upstreams
        }

    async def _pulse(self) -> None:
        turns, inserted = self.counts["turns"], self.counts["inserted"]
        told = (turns - self._pulsed[0], inserted - self._pulsed[1])
        await self._link.call(_PULSE, (DUE, self._holder, timedelta(seconds=_PULSE_SECONDS), *told))
        self._pulsed = (turns, inserted)

    def _failed(self, kind: str, error: LivewellError) -> None:
        self.counts["outages"] += 1
        self._warnings.add(DUE, f"the due check failed: {kind}", str(error))
        log.warning("due check failed", error=str(error))

    def _took(self, upstream: str, seconds: float) -> None:
        """A due check, for the metrics of this process and, with the next flush, for the statistics of the fleet."""
        DUE_SECONDS.observe(seconds, upstream)
        self._checks += 1
        self._check_seconds += seconds

    async def _flush(self) -> None:
        await self._warnings.flush()
        if self._checks and self._stats_at <= time.monotonic():
            checks, ms = self._checks, round(self._check_seconds * 1000)
            self._stats_at = time.monotonic() + _STATS_SECONDS
            self._checks, self._check_seconds = 0, 0.0
            await self._link.call(_STATS, (DUE, checks, ms))

    async def _leave(self) -> None:
        try:
            if await self.singleton.release():
                self._nudger.nudge(DUE)  # whoever waits for it may begin
        except DatabaseError as error:
            log.warning("the singleton was not released; it ends by itself", error=str(error))
        finally:
            await self._link.close()
