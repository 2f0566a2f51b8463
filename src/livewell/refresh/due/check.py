"""The due check, run by every worker that has refresh queues; one of them at a time does it.

    waiting ──singleton acquired──▶ dispatching ──nothing due, nothing nudged──▶ sleeping (until something is due, at most a second) ──▶ dispatching
       ▲                                 ├──term lost, or the database away──┐
       └─────────────────────────────────┴───────────────────────────────────┘
    stop: the singleton is released, so that the next worker begins at once

Each turn, for every upstream: livewell.dispatch_due. Every five seconds what waits though nobody wants it any more is ended (livewell.drop_refreshes). Every second scheduled types whose time has come walk on through their universe, and the viewers of a page of keys are counted again
(livewell.recount_viewers), round and round. Everything is decided in
SQL under the fence; a turn that was cut off half-way is taken again by whoever comes next. It turns far too often to have a run each time: one row, its pulse, says how often it did and when last.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog
from cronsim import CronSim, CronSimError

from livewell.db import Database, Listener
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseError, LivewellError
from livewell.refresh.subscribe.subscriptions import DUE
from livewell.schedule.singleton import Held, Singleton
from livewell.telemetry.measures import DUE_SECONDS

log = structlog.get_logger("livewell.refresh")

_DISPATCH = (
    "SELECT answer, inserted, merged, parked, failed, due, wait_seconds, queues FROM livewell.dispatch_due(%s, %s, %s)"
)
_WALKS = "SELECT data_type, cron, zone, due_at, paused, shown, now FROM livewell.list_walks()"
_WALK = "SELECT answer, inserted, merged, wait_seconds, queues FROM livewell.dispatch_scheduled(%s, %s, %s, %s)"
_RECOUNT = "SELECT data_type, key FROM livewell.recount_viewers(%s, %s, %s)"
_DROP = "SELECT livewell.drop_refreshes(%s)"
_DROP_SECONDS = 5.0
_PULSE = "SELECT livewell.record_pulse(%s, %s, %s, %s, %s)"
_PULSE_SECONDS = 5.0
_STATS = "SELECT livewell.add_stats(ARRAY['refresh.due'], ARRAY['livewell.due_check'], ARRAY['done'], ARRAY[%s]::bigint[], ARRAY[%s]::bigint[])"
_STATS_SECONDS = 10.0
_WARNINGS_MAX = 100
# While a dead holder's term lasts, nothing new becomes a job: of a limit of 300 calls a minute, 15 s had cost up to 75 calls. Renewed every third of it; losing a term by mistake costs nothing.
_LEASE_SECONDS = 5.0


class Dispatcher:
    """The loop. `wake` is called for nudges; whoever has a listener of their own passes listen=False and calls it."""

    def __init__(
        self,
        database: Database,
        nudger: Nudger,
        *,
        holder: str,
        lease_seconds: float | None = None,
        poll_seconds: float = 1.0,
        listen: bool = True,
    ) -> None:
        self._nudger = nudger
        self._link = database.link()
        self.singleton = Singleton(
            self._link,
            DUE,
            holder=holder,
            lease_seconds=lease_seconds or min(database.settings.lease_seconds, _LEASE_SECONDS),
        )
        self._listener = (
            Listener(
                database.listen_conninfo,
                on_nudge=self.wake,
                on_reconnect=lambda: self.wake(DUE),
                check_seconds=database.settings.listen_check_seconds,
                connect_seconds=database.settings.connect_timeout_seconds,
            )
            if listen
            else None
        )
        self._poll_seconds = poll_seconds
        self._woken = asyncio.Event()
        self._stopping = False
        self._next: dict[str, float] = {}  # upstream → when it is worth looking, monotonic
        self._walk_at = 0.0
        self._drop_at = 0.0
        self._counted: dict[str, tuple[str | None, str | None]] = {}  # upstream → where the recount is
        self._holder = holder
        self._pulse_at = 0.0
        self._pulsed = (0, 0)  # turns and jobs that were written already
        self._warnings: dict[tuple[str, str], str] = {}
        self._checks, self._check_seconds, self._stats_at = 0, 0.0, 0.0  # not yet in the statistics
        self.counts: defaultdict[str, int] = defaultdict(
            int
        )  # turns, inserted, merged, dropped, parked, failed, outages

    def wake(self, name: str) -> None:
        """Somebody subscribed to something stale, or asked for it: look now."""
        if name in (DUE, "*"):
            self._next.clear()
            self._woken.set()

    def stop(self) -> None:
        """Finish the turn under way, release the singleton, end run()."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Until stop(), through any outage of the database."""
        self._nudger.attach(self.wake)
        listening = asyncio.create_task(self._listener.run()) if self._listener else None
        try:
            while not self._stopping:
                await self._sleep(await self._survive())
        finally:
            self._nudger.detach(self.wake)
            if listening is not None:
                listening.cancel()
                await asyncio.wait([listening])
            await self._leave()

    async def turn(self) -> float:
        """One turn, if the singleton is ours; answers for how many seconds there is nothing to do."""
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
            await self._walk()
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
        began = time.monotonic()
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
        self._next[upstream] = time.monotonic() + min(
            self._poll_seconds, 60.0 if wait_seconds is None else wait_seconds
        )
        return True

    async def _walk(self) -> None:
        """Plan scheduled types that have no instant yet; walk on with those whose time has come."""
        for name, cron, zone, due_at, paused, shown, now in await self._link.call(_WALKS):
            fence = self.singleton.fence
            if fence is None:
                return
            waiting = paused or (due_at is not None and due_at > now)
            if waiting and shown:
                continue
            try:
                after = next_instant(cron, zone, now)
                if not shown and due_at is not None:
                    gap = next_instant(cron, zone, after) - after
                    await self._link.call("SELECT livewell.show_walk(%s, %s)", (name, gap))
            except (CronSimError, ZoneInfoNotFoundError, ValueError, StopIteration) as error:
                self._warn("refresh.schedule", "a schedule cannot be read", f"{name}: {cron!r} in {zone!r}: {error}")
                continue
            if waiting:
                continue
            if due_at is None:
                await self._link.call("SELECT livewell.plan_cron(%s, %s, %s, %s)", (name, cron, zone, after))
                continue
            answer, inserted, merged, _, queues = (await self._link.call(_WALK, (DUE, fence, name, after)))[0]
            self.counts["inserted"] += inserted
            self.counts["merged"] += merged
            for queue in queues or ():
                self._nudger.nudge(queue)
            if answer == "not_holder":
                self.singleton.lose()

    async def _recount(self, upstreams: Sequence[str]) -> None:
        """Count the viewers of the next page of each upstream's keys: order under overload goes by what was counted last."""
        self._counted = {
            name: (await self._link.call(_RECOUNT, (name, *self._counted.get(name, (None, None)))))[0]
            for name in upstreams
        }

    async def _pulse(self) -> None:
        turns, inserted = self.counts["turns"], self.counts["inserted"]
        told = (turns - self._pulsed[0], inserted - self._pulsed[1])
        await self._link.call(_PULSE, (DUE, self._holder, timedelta(seconds=_PULSE_SECONDS), *told))
        self._pulsed = (turns, inserted)

    async def _survive(self) -> float:
        """A turn; a database that is away costs a pause and is counted."""
        try:
            return await self.turn()
        except LivewellError as error:
            self.counts["outages"] += 1
            what = error.sqlstate if isinstance(error, DatabaseError) and error.sqlstate else type(error).__name__
            self._warn("refresh.due", f"the due check failed: {what}", str(error))
            log.warning("due check failed", error=str(error))
            return self._poll_seconds * random.uniform(0.5, 1.0)  # noqa: S311 - jitter

    def _took(self, upstream: str, seconds: float) -> None:
        """A due check, for the metrics of this process and, with the next flush, for the statistics of the fleet."""
        DUE_SECONDS.observe(seconds, upstream)
        self._checks += 1
        self._check_seconds += seconds

    def _warn(self, where: str, what: str, sample: str) -> None:
        if len(self._warnings) < _WARNINGS_MAX:
            self._warnings[where, what] = sample

    async def _flush(self) -> None:
        for (where, what), sample in list(self._warnings.items()):
            await self._link.call("SELECT livewell.warn(%s, %s, %s)", (where, what, sample))
            self._warnings.pop((where, what), None)
        if self._checks and self._stats_at <= time.monotonic():
            checks, ms = self._checks, round(self._check_seconds * 1000)
            self._stats_at = time.monotonic() + _STATS_SECONDS
            self._checks, self._check_seconds = 0, 0.0
            await self._link.call(_STATS, (checks, ms))

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0 and not self._stopping:
            try:
                async with asyncio.timeout(min(seconds, self._poll_seconds)):
                    await self._woken.wait()
            except TimeoutError:
                return
        self._woken.clear()

    async def _leave(self) -> None:
        try:
            if await self.singleton.release():
                self._nudger.nudge(DUE)  # whoever waits for it may begin
        except DatabaseError as error:
            log.warning("the singleton was not released; it ends by itself", error=str(error))
        finally:
            await self._link.close()


def next_instant(cron: str, zone: str, after: datetime) -> datetime:
    """The first instant of a cron expression in a zone that is later than `after`; right where clocks change."""
    return next(CronSim(cron, after.astimezone(ZoneInfo(zone))))
