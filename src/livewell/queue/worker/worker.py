"""The life of a worker.

    starting ──registered──▶ working ──stop──▶ stopping ──released──▶ stopped
                  ▲             │                  └── second stop: handlers are ended at once
                  └──buried─────┘   our row is gone: somebody else owns our jobs. Drop everything, register as a new incarnation.

An outage of any length only delays: every part waits and tries again. Everything that must survive
is in the database; nothing here is trusted to survive.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import structlog

from livewell.db import Database, Listener
from livewell.db.listen import require_direct
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseError, LivewellError
from livewell.limits import Walls
from livewell.model import Backoff, Claimed, Failed, Permit, Refused, Released, RunEnd, Stopped, Succeeded
from livewell.queue.definition import TaskDefinition
from livewell.queue.failures import FailureLog
from livewell.queue.job import Job
from livewell.queue.nudges import CANCEL, EVERY
from livewell.queue.outcomes import end_of, seen_in
from livewell.queue.worker.claim_ahead import ClaimAhead
from livewell.queue.worker.claim_limited import ClaimLimited, divide
from livewell.queue.worker.holding import Held, Holding, StopReason
from livewell.queue.worker.keeper import Keeper, Renewed
from livewell.queue.worker.slots import Slots
from livewell.queue.worker.upkeep import Upkeep
from livewell.telemetry import measures
from livewell.version import VERSION

log = structlog.get_logger("livewell.worker")

_WORDS = {
    type(None): "succeeded",
    Succeeded: "succeeded",
    Failed: "failed",
    Refused: "refused",
    Released: "released",
    Stopped: "cancelled",
}
_BACKOFFS = "SELECT name, backoff_base_seconds, backoff_cap_seconds FROM livewell.queue LIMIT 10000"
_REPEATS_SECONDS = 5.0
_RELEASE_SECONDS = 5.0
_CANCEL_TRIES = 25
_SHUTDOWN_SECONDS = 1.0  # for handlers that were cancelled to clean up


class Worker:
    """Runs the tasks of an app from some of its queues, until stop() is called."""

    def __init__(
        self,
        database: Database,
        tasks: Mapping[str, TaskDefinition],
        *,
        queues: Sequence[str],
        nudger: Nudger,
        slots: int | None = None,
        name: str | None = None,
        on_hang: Callable[[], None] | None = None,
        beside: Sequence[Callable[[], Awaitable[None]]] = (),
        hear: Callable[[str], None] | None = None,
        settle: Callable[[float, asyncio.Event], Awaitable[None]] | None = None,
        walls: Walls,
        can_use: Callable[[str, str], bool] = lambda _queue, _credential: True,
    ) -> None:
        if not queues:
            raise LivewellError("a worker needs at least one queue; the app declares none")
        self._database = database
        self._settings = database.settings
        self._tasks = tasks
        self._queues = list(queues)
        self._hear = hear  # told every nudge that the listener hears
        self._beside = beside  # what else runs while it works, until its handlers have ended
        self._settle = settle  # what else is given the grace when it stops, with the event that ends it
        self._names, self._patterns = divide(queues)
        self._nudger = nudger
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        count = slots or self._settings.worker_slots
        self.holding = Holding()
        self.fenced = 0
        self.finished = 0
        self.incarnations = 0
        self.started = asyncio.Event()
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._registering: asyncio.Task[None] | None = None
        self._slots = Slots(
            count,
            tasks,
            self.holding,
            on_result=self._on_result,
            stuck_threads_max=self._settings.stuck_threads_max,
        )
        # Jobs that may share a call are picked together, by claim_limited, also in a queue without
        # limits.
        shared = {task.policy.queue for task in tasks.values() if task.list_parameter is not None}
        self._claim_ahead = ClaimAhead(
            database,
            self.holding,
            [queue for queue in self._names if queue not in shared],
            count,
            make=self._make,
            on_jobs=self._slots.wake,
            on_finished=self._on_finished,
            on_buried=self._on_buried,
            on_unknown=lambda: self._keeper.beat_soon(reconcile=True),
        )
        self._limited = ClaimLimited(
            database,
            self.holding,
            queues,
            shared=shared,
            batches={name: task.policy.batch for name, task in tasks.items() if task.list_parameter is not None},
            slots=self._slots,
            make=self._make,
            can_use=can_use,  # whether this process has what a credential of a queue stands for
            may_claim=lambda: self._claim_ahead.may_claim,
            stopping=self._stopping.is_set,
            give_back=self._give_back,
            on_suspect=self._claim_ahead.alone,
            on_buried=self._on_buried,
            on_unknown=lambda: self._keeper.beat_soon(reconcile=True),
            walls=walls,
        )
        self._failures = FailureLog()
        self._upkeep = Upkeep(database, self.holding, on_ready=self._on_ready)
        self._keeper = Keeper(
            database, snapshot=self.holding.snapshot, on_renewed=self._on_renewed, on_hang=on_hang, walls=walls
        )
        self._listener = Listener(
            database.listen_conninfo,
            on_nudge=self._on_heard,
            on_reconnect=lambda: self._on_heard(EVERY),
            check_seconds=self._settings.listen_check_seconds,
            connect_seconds=self._settings.connect_timeout_seconds,
        )

    @property
    def must_exit_hard(self) -> bool:
        """True after run() if only a hard exit ends the process.

        Either a handler ignores being stopped (its job is handed back), or memory ran out: an
        orderly end might then wait for ever for a part that died.
        """
        return (
            self._slots.stuck > 0
            or bool(self._slots.deaf)
            or self._slots.starved.is_set()
            or self._keeper.ended.is_set()
        )

    @property
    def calls(self) -> int:
        """How many calls it made to finish jobs and claim others."""
        return self._claim_ahead.calls

    def stop(self) -> None:
        """Ask for a graceful stop.

        Asked again, handlers are ended at once and their jobs handed back.
        """
        (self._hurry if self._stopping.is_set() else self._stopping).set()

    async def run(self) -> None:
        """Work until stopped, then finish or hand back what is held."""
        self._database.require_primary()
        await require_direct(self._database.listen_conninfo, self._settings.connect_timeout_seconds)
        await self._register()
        self._slots.start()
        self._keeper.start()
        self._nudger.attach(self._on_nudge)
        claiming = asyncio.create_task(self._claim_ahead.run(), name="claim-ahead")
        duties = [
            claiming,
            asyncio.create_task(self._limited.run(), name="limited"),
            asyncio.create_task(self._upkeep.run(), name="upkeep"),
            asyncio.create_task(self._listener.run(), name="listener"),
            asyncio.create_task(self._watch_threads(), name="threads"),
            asyncio.create_task(self._watch_memory(), name="memory"),
            asyncio.create_task(self._watch_keeper(), name="keeper"),
            asyncio.create_task(self._slots.watch(), name="slots"),
            asyncio.create_task(self._tell_repeats(), name="repeats"),
            *(asyncio.create_task(_wait_for(duty), name="beside") for duty in self._beside),
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        self.started.set()
        measures.started()
        log.info("worker started", worker=self.holding.worker, name=self.name, queues=self._queues)
        try:
            await asyncio.wait([stopping, *duties], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._claim_ahead.claiming = False
            broken = [duty for duty in duties if duty.done()]
            await self._stop(claiming, duties)
            stopping.cancel()
        for duty in broken:
            duty.result()  # a duty never ends by itself: this raises what ended it

    async def _register(self) -> None:
        """Start an incarnation; waits out an outage."""
        arguments = (
            self.name,
            VERSION,
            self._queues,
            sorted(self._tasks),
            self._slots.count,
            self._settings.lease_seconds,
        )
        pause = 0.05
        while True:
            try:
                await self._database.call(
                    "SELECT livewell.ensure_history_days(%s)", (self._settings.history_days_ahead,)
                )
                rows = await self._database.call("SELECT livewell.register_worker(%s, %s, %s, %s, %s, %s)", arguments)
                backoffs = await self._database.call(_BACKOFFS)
                break
            except DatabaseError as error:
                if self.incarnations == 0:
                    raise
                log.warning("cannot register yet", error=str(error))
                await asyncio.sleep(pause)
                pause = min(5.0, pause * 2)
        self.holding.worker = rows[0][0]
        self._failures.backoffs = {name: Backoff(base, cap) for name, base, cap in backoffs}
        self.incarnations += 1
        self._claim_ahead.nudge()

    def _make(self, claimed: Claimed, permit: Permit | None = None) -> Held:
        definition = self._tasks.get(claimed.kind)
        timeout = definition.policy.timeout_seconds if definition else self._settings.task_timeout_seconds
        return Held(Job(claimed, self.holding.worker, self._database, permit), timeout)

    def _on_result(self, held: Held, run_end: RunEnd) -> None:
        end = end_of(held.job, run_end)
        if not isinstance(end, Succeeded):
            self._tell_of(held, end)
        self._claim_ahead.result(held, end)

    def _tell_of(self, held: Held, end: RunEnd) -> None:
        """Log what did not simply succeed."""
        outcome = seen_in(end)
        self._limited.note_wall(held, outcome)
        if (
            outcome is not None
            and not isinstance(outcome, Succeeded)
            and held.stop_reason in (None, StopReason.TIMEOUT)
        ):
            self._failures.tell(held.job, end)
            if isinstance(outcome, Released):
                self._upkeep.warn("worker", f"job released: {held.job.claimed.kind}", outcome.why)

    def _give_back(self, helds: Sequence[Held], why: str) -> None:
        for held in helds:
            held.job.used(0)
            self._claim_ahead.result(held, Released(why))

    def _on_finished(self, finished: Sequence[Held], fenced: AbstractSet[int]) -> None:
        now = time.monotonic()
        for queue in {held.job.claimed.queue for held in finished if held.job.permitted is not None}:
            if self._limited.makes_room(queue):
                self._limited.nudge(queue)
                self._nudger.nudge(queue)  # a place is free in the whole fleet
        lengths: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
        for held in finished:
            claimed = held.job.claimed
            outcome = _WORDS[type(held.outcome)]
            if fenced and claimed.fence in fenced and not held.uncertain:
                self.fenced += 1
                outcome = "fenced"
                self._upkeep.warn("worker", "a result was fenced: another worker owns the job", f"job {claimed.id}")
            lengths[claimed.queue, claimed.kind, outcome].append(now - held.started if held.started else 0.0)
        for key, each in lengths.items():
            self._upkeep.count(key, each)
            measures.JOB_SECONDS.observe_all(each, key[0], key[2])
        self.finished += len(finished)

    def _on_heard(self, name: str) -> None:
        if self._hear is not None:
            self._hear(name)
        self._on_nudge(name)

    def _on_nudge(self, name: str) -> None:
        if name == CANCEL:
            self._keeper.beat_soon()
        elif name in self._names or name == EVERY or name.startswith(self._patterns):
            self._limited.nudge(name)
            if name == EVERY or (name in self._names and name not in self._limited.queues):
                self._claim_ahead.nudge()

    def _on_ready(self) -> None:
        self._claim_ahead.nudge()
        self._limited.nudge(EVERY)
        self._nudger.nudge(EVERY)

    def _on_renewed(self, renewed: Renewed) -> None:
        holding = self.holding
        if renewed.snapshot.worker != holding.worker:
            return
        if not renewed.alive:
            self._on_buried()
            return
        if holding.claim_mark is None and holding.limited_mark is None:
            holding.mark = max(holding.mark, renewed.mark)
        for fence in renewed.snapshot.started_fences:
            if fence in holding.running:
                holding.running[fence].deadline_known = True
        for fence in renewed.cancel:
            if fence in holding.running:
                holding.running[fence].stop(StopReason.CANCEL)
        if renewed.drain:
            self._claim_ahead.draining = True
        if renewed.handed_back:
            self._upkeep.warn(
                "worker", "jobs handed back: their claim was never answered", f"{renewed.handed_back} jobs"
            )

    def _on_buried(self) -> None:
        """Somebody owns our jobs by now.

        Whatever we still hold is worthless, but what its calls have used.
        """
        holding = self.holding
        if holding.worker == 0 or self._stopping.is_set():
            return
        log.warning("lease lost; starting over", worker=holding.worker, held=len(holding.all))
        self._upkeep.warn("worker", "lease lost", f"{len(holding.all)} jobs held")
        holding.worker = 0
        holding.buffer.clear()
        self._claim_ahead.report_late(holding.results)
        holding.results.clear()
        holding.all.clear()
        for held in list(holding.running.values()):
            held.stop(StopReason.FENCED)
        self._registering = asyncio.create_task(self._register())

    async def _tell_repeats(self) -> None:
        while True:
            await asyncio.sleep(_REPEATS_SECONDS)
            self._failures.flush()

    async def _watch_keeper(self) -> None:
        await self._keeper.ended.wait()
        raise LivewellError(
            "the heartbeat's thread died (see above); the worker ends so that a new process can take over"
        )

    async def _watch_memory(self) -> None:
        await self._slots.starved.wait()
        self._hurry.set()  # handlers may wait for something that died: their jobs go back at once
        raise LivewellError(
            "the process ran out of memory, and parts of it may have failed unseen; the worker ends so that a "
            "new process can take over"
        )

    async def _watch_threads(self) -> None:
        await self._slots.too_many_stuck.wait()
        raise LivewellError(
            f"{self._slots.stuck} handlers in threads ignore their timeout (LIVEWELL_STUCK_THREADS_MAX); "
            "the worker ends so that a new process can take over. Make them look at job.cancel_requested"
        )

    async def _stop(self, claiming: asyncio.Task[None], duties: list[asyncio.Task[None]]) -> None:
        """Hand back what has not started, let the rest finish within the grace, release what remains at once."""
        holding = self.holding
        while holding.buffer:
            held = holding.buffer.popleft()
            self._claim_ahead.result(held, Released("the worker stopped before it started"))
        grace, settle = self._settings.grace_seconds, self._settle
        others = [] if settle is None else [settle(grace, self._hurry)]
        await asyncio.gather(self._slots.settle(grace, self._hurry), *others)
        for held in list(holding.running.values()):
            held.stop(StopReason.SHUTDOWN)
        await self._slots.settle(_SHUTDOWN_SECONDS)
        if self._registering is not None:
            self._registering.cancel()
        self._claim_ahead.stop()
        await asyncio.wait([claiming], timeout=_RELEASE_SECONDS)
        await _cancel(duties)
        self._nudger.detach(self._on_nudge)
        released = 0
        try:
            await self._limited.tell_walls()
            await self._claim_ahead.flush(_RELEASE_SECONDS)
            await self._upkeep.flush()
            rows = await self._database.call("SELECT livewell.release_worker(%s)", (holding.worker,))
            released = rows[0][0]
        except DatabaseError as error:
            log.warning("could not release; the lease will run out", error=str(error))
        await self._keeper.close()
        await self._slots.close()
        await self._claim_ahead.close()
        await self._limited.close()
        await self._upkeep.close()
        if released:
            self._nudger.nudge(EVERY)
        self._failures.flush(everything=True)
        log.info("worker stopped", worker=holding.worker, finished=self.finished, released=released)


async def _wait_for(duty: Callable[[], Awaitable[None]]) -> None:
    await duty()


async def _cancel(duties: list[asyncio.Task[None]]) -> None:
    """Cancel the duties, and ask again until they end.

    Python 3.11's wait_for (in psycopg) swallows a cancellation that comes as its future completes.
    """
    left = set(duties)
    for _ in range(_CANCEL_TRIES):
        for duty in left:
            duty.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)
        if not left:
            return
