"""The loop that runs schedules; every worker has one, and any of them may run any slot.

    looking ──nothing is due──▶ sleeping (until the next slot, a nudge, at most a second) ──▶ looking
       ├──a slot is due──▶ planned here, begun in the database ──begun──▶ a run of its own, beside the loop
       │                                                       ├──skipped, moved──▶ looking
       │                                                       └──waiting (it catches up, and the last run still runs)──▶ looked at again soon
       └──the database is away──▶ a pause, counted ──▶ looking

There is no leader: the worker whose call comes first gets the slot. The database's clock decides
which slot is due; only the reading of cron texts happens here.

The run of an open-ended schedule (a walk of a scheduled type) needs no handler: it is only begun
here. The loop that does the work ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import LivewellError
from livewell.loops import Waker, WarningBuffer, surviving
from livewell.queue.worker.threads import Threads
from livewell.schedule.cron import CronError, first_slot
from livewell.schedule.definition import Run, ScheduleDefinition
from livewell.schedule.due_times import Kind, Missed, Rule, plan
from livewell.schedule.nudges import SCHEDULE
from livewell.schedule.run import Begun, Running
from livewell.telemetry.repeats import Repeats

log = structlog.get_logger("livewell.schedule")

_DECLARE = "SELECT livewell.declare_schedule(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
# Open-ended schedules need no handler: any scheduler begins their runs.
_TICK = (
    "SELECT name, kind, cron, zone, every, missed, due_at, asked_at, now, wait_seconds FROM livewell.tick_schedules("
    "%s::text[] || ARRAY(SELECT s.name FROM livewell.schedule s WHERE s.open_ended), %s)"
)
_PLAN = "SELECT livewell.plan_schedule(%s, %s, %s, %s, %s)"
_BEGIN = "SELECT answer, run_id, fence, wait_seconds FROM livewell.begin_run(%s, %s, %s, %s, %s, %s, %s, %s, %s)"
_ASKED = "SELECT answer, run_id, fence, wait_seconds FROM livewell.begin_asked_run(%s, %s, %s)"
_THREADS_MAX = 32  # for plain handlers
_AGAIN_SECONDS = 0.2  # until a slot that waits for the run before it is looked at again
_MOVED_SECONDS = 0.02  # somebody else has the slot, or only the row: not to ask as fast as we can
_LEASE_SECONDS_MAX = 3600.0
# Of the lease that is set: whoever takes over needs a moment too, and all of it shall fit into the
# lease. With the whole lease the gap behind a frozen scheduler was 2.005 s of 2.
_TERM = 0.9
# a process that has just started leaves housekeeping and the like alone: all of it at once took the
# processor from its first jobs
_SETTLING_SECONDS = 3.0
_STOP_SECONDS = 3.0  # for handlers that were cancelled, and for their ends to be written


@dataclass(frozen=True, slots=True)
class _Found:
    """A row of tick_schedules."""

    name: str
    kind: Kind
    cron: str | None
    zone: str | None
    every: timedelta | None
    missed: Missed
    due: datetime | None
    asked: datetime | None
    now: datetime

    @property
    def is_due(self) -> bool:
        """True if the slot has come, by the database's clock.

        Both are compared in UTC: a session of another zone must not be compared by its wall clock.
        """
        return self.due is None or self.due.astimezone(UTC) <= self.now.astimezone(UTC)


class Scheduler:
    """The loop of one process, for the schedules whose handlers it has."""

    def __init__(
        self,
        database: Database,
        nudger: Nudger,
        definitions: Sequence[ScheduleDefinition],
        *,
        holder: str,
        lease_seconds: float | None = None,
        poll_seconds: float = 1.0,
    ) -> None:
        self._nudger = nudger
        self._link = database.link()
        self._definitions = {one.name: one for one in definitions}
        self._holder = holder.encode()[:200].decode(errors="ignore")
        self._lease_seconds = _TERM * min(lease_seconds or database.settings.lease_seconds, _LEASE_SECONDS_MAX)
        self._poll_seconds = poll_seconds
        self._threads = Threads(_THREADS_MAX)
        self._running: dict[asyncio.Task[None], Running] = {}
        self._left_behind: dict[str, asyncio.Future[Any]] = {}  # handlers that outlived their run, by schedule
        self._again: dict[str, float] = {}  # schedules that wait for their last run → when to look again, monotonic
        self._waker = Waker()
        self._stopping = False
        self._declared = False
        self._ours_at = 0.0  # when to begin with our own schedules, monotonic
        self._warnings = WarningBuffer(self._link.call)
        self._repeats = Repeats()
        self.counts: defaultdict[str, int] = defaultdict(int)  # turns, begun, skipped, moved, succeeded, failed, lost …

    def wake(self, name: str) -> None:
        """Somebody asked for a run, or changed a schedule: look now."""
        if name == SCHEDULE:
            self._again.clear()
            self._waker.set()

    async def run(self) -> None:
        """Until cancelled or settled, through any outage of the database."""
        self._nudger.attach(self.wake)
        self._ours_at = time.monotonic() + _SETTLING_SECONDS
        try:
            while not self._stopping:
                rest = await surviving(self.turn, self._failed, pause_seconds=self._poll_seconds)
                await self._waker.rest(min(rest, self._poll_seconds))
                self._tell_repeats()
            await asyncio.Event().wait()  # settled: what is left is to be cancelled
        finally:
            self._tell_repeats(everything=True)
            self._nudger.detach(self.wake)
            self._threads.close()
            await self._link.close()

    async def settle(self, grace_seconds: float, hurry: asyncio.Event) -> None:
        """Begin nothing more; let what runs end within the grace, and end the rest as failed.

        A run that is cut off all the same becomes crashed when its lease is over.
        """
        self._stopping = True
        self._waker.set()
        hurried = asyncio.ensure_future(hurry.wait())
        try:
            if self._running:
                await asyncio.wait([_all(self._running), hurried], timeout=grace_seconds, return_when="FIRST_COMPLETED")
        finally:
            hurried.cancel()
        for running in self._running.values():
            running.stop()
        if self._running:
            await asyncio.wait(list(self._running), timeout=_STOP_SECONDS)

    async def turn(self) -> float:
        """Begin what is due; answers for how many seconds nothing will be."""
        if not self._declared:
            await self._declare()
        await self._warnings.flush()
        self.counts["turns"] += 1
        settled_in = self._ours_at - time.monotonic()
        wait = min(self._poll_seconds, settled_in) if settled_in > 0 else self._poll_seconds
        names = [one.name for one in self._definitions.values() if settled_in <= 0 or not one.internal]
        for row in await self._link.call(_TICK, (names, self._holder)):
            if row[0] is None:
                wait = min(wait, self._poll_seconds if row[9] is None else row[9])
            elif not self._stopping:
                wait = min(wait, await self._handle(_Found(*row[:9])))
        return wait

    async def _declare(self) -> None:
        for one in self._definitions.values():
            rule, timeout = one.rule, timedelta(seconds=one.timeout_seconds)
            await self._link.call(
                _DECLARE,
                (
                    one.name,
                    rule.kind,
                    rule.cron,
                    rule.zone,
                    rule.every,
                    one.at,
                    one.missed,
                    timeout,
                    one.internal,
                    one.internal,
                ),
            )
        self._declared = True

    async def _handle(self, found: _Found) -> float:
        """One schedule that is due, was asked for or is not planned; answers when to look again."""
        again = self._again.get(found.name, 0.0) - time.monotonic()
        if again > 0:
            return again
        self._again.pop(found.name, None)
        if found.asked is not None:
            sent = time.monotonic()
            rows = await self._link.call(_ASKED, (found.name, self._holder, self._lease))
            wait = self._answered(found.name, found.asked, sent, rows[0], by_hand=True)
            if wait:
                return wait
        if not found.is_due:
            return self._poll_seconds
        try:
            return await self._plan(found) if found.due is None else await self._slot(found, found.due)
        except CronError as error:
            # Written by another version, or by hand: it is refused when it is declared.
            self._warn(f"a schedule cannot be read: {found.name}", f"{found.cron!r} in {found.zone!r}: {error}")
            return self._poll_seconds

    async def _plan(self, found: _Found) -> float:
        if found.cron is None or found.zone is None:
            return self._poll_seconds  # it has ended, and was asked for
        first, gap = first_slot(found.cron, found.zone, found.now)
        await self._link.call(_PLAN, (found.name, found.cron, found.zone, first, gap))
        return max(0.0, (first - found.now).total_seconds())

    async def _slot(self, found: _Found, due: datetime) -> float:
        planned = plan(Rule(found.kind, found.cron, found.zone, found.every), found.missed, due, found.now)
        sent = time.monotonic()
        skipped = (planned.skipped, planned.skipped_last)
        rows = await self._link.call(
            _BEGIN,
            (found.name, self._holder, due, planned.slot, planned.after, planned.gap, *skipped, self._lease),
        )
        wait = self._answered(found.name, planned.slot, sent, rows[0])
        if wait or planned.after is None:
            return wait or self._poll_seconds
        return max(0.0, (planned.after - found.now).total_seconds())

    @property
    def _lease(self) -> timedelta:
        return timedelta(seconds=self._lease_seconds)

    def _answered(self, name: str, slot: Any, sent: float, row: Sequence[Any], *, by_hand: bool = False) -> float:
        """Start what was begun.

        Answers how long to wait before this schedule is looked at again.
        """
        answer, run_id, fence, wait_seconds = row
        self.counts[answer] += 1
        definition = self._definitions.get(name)
        if answer == "waiting" and definition is None:
            return self._poll_seconds  # an open-ended run, perhaps of hours
        if answer == "waiting":
            wait = min(max(float(wait_seconds), 0.01), _AGAIN_SECONDS)
            self._again[name] = time.monotonic() + wait
            return wait
        if answer == "moved":
            return _MOVED_SECONDS
        if answer == "begun" and definition is not None:
            self._start(definition, Begun(Run(name, slot, by_hand, run_id), fence, sent))
        return 0.0

    def _start(self, definition: ScheduleDefinition, begun: Begun) -> None:
        running = Running(
            self._link,
            self._threads,
            definition,
            begun,
            lease_seconds=self._lease_seconds,
            left_behind=self._left_behind,
            warn=self._warn,
            repeats=self._repeats,
        )
        task = asyncio.create_task(self._follow(running, definition.name), name=f"run-{begun.run.id}")
        self._running[task] = running
        task.add_done_callback(self._ended)

    async def _follow(self, running: Running, name: str) -> None:
        self.counts[await running.go()] += 1
        if self._again.pop(name, None) is not None:
            self._waker.set()  # a slot waited for this one

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.counts["lost"] += 1
            self._warn(f"a run could not be followed: {type(error).__name__}", str(error))
            log.error("a run could not be followed", error=str(error))

    def _failed(self, kind: str, error: LivewellError) -> None:
        self.counts["outages"] += 1
        self._warn(f"the scheduler failed: {kind}", str(error))
        log.warning("scheduler failed", error=str(error))

    def _tell_repeats(self, *, everything: bool = False) -> None:
        for cause, n in self._repeats.overdue(everything=everything):
            log.warning("more runs failed alike", cause=cause, runs=n)

    def _warn(self, what: str, sample: str) -> None:
        self._warnings.add("schedule", what, sample)


def _all(running: dict[asyncio.Task[None], Running]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(asyncio.wait(list(running)))
