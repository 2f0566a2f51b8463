"""The slots: a fixed set of tasks that pull jobs from the buffer and run their handlers.

There are as many places for calls of limited queues, which start the moment they are claimed.

    idle ──job in buffer──▶ running ──ends──▶ result handed to ClaimAhead ──▶ idle
                               └── stopped from outside (timeout, cancel, fenced, shutdown): CancelledError with a reason

A fixed set runs 72-99k jobs a second, a task per job 52-72k. One sweep watches all timeouts,
instead of a timer per job. Sync handlers run in threads. A thread that outlives its job's timeout
cannot be killed, so it is abandoned and counted, and too many of them end the worker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from livewell.errors import LivewellError, PermitLate
from livewell.model import Failed, Outcome, Released, RunEnd, Stopped
from livewell.queue.definition import TaskDefinition
from livewell.queue.run import OutOfMemory, failed, run_call, run_job
from livewell.queue.worker.holding import Held, Holding, StopReason
from livewell.queue.worker.threads import Threads
from livewell.telemetry.tracebacks import passed_users_code

_SWEEP_SECONDS = 0.05
_TURNS = (
    50  # jobs that may start between two looks at the sockets; with 64 per slot an answer lay unread for milliseconds
)
_CLOSE_SECONDS = 2.0
_CANCELLED_ITSELF = "the handler raised CancelledError itself: something it waited for was cancelled"
_NO_MEMORY = "MemoryError: the process had no memory left"
_UNSPEAKABLE = "the handler ended in a way that could not be described"


class Slots:
    """Runs what is in the buffer, `count` at a time."""

    def __init__(
        self,
        count: int,
        tasks: Mapping[str, TaskDefinition],
        holding: Holding,
        *,
        on_result: Callable[[Held, RunEnd], None],
        stuck_threads_max: int,
    ) -> None:
        self.count = count
        self.stuck = 0  # threads that outlived their job
        self.deaf: set[asyncio.Task[None]] = (
            set()
        )  # slots whose handler swallowed its cancellation, known after close()
        self.too_many_stuck = asyncio.Event()
        self.starved = asyncio.Event()  # the process ran out of memory
        self._stuck_threads_max = stuck_threads_max
        self._tasks = tasks
        self._holding = holding
        self._on_result = on_result
        self._idle: list[asyncio.Future[None]] = []
        self._slots: list[asyncio.Task[None]] = []
        self._settling: asyncio.Event | None = None
        self._turns = _TURNS
        self._calls: set[asyncio.Task[None]] = set()
        self._threads = Threads(2 * count + stuck_threads_max)

    @property
    def free_calls(self) -> int:
        """How many calls of limited queues could start now.

        Places of their own: neither a full buffer nor a slow upstream keeps the other kind from
        running.
        """
        return self.count - len(self._calls)

    def start_call(self, helds: Sequence[Held], on_free: Callable[[], None]) -> None:
        """Run the jobs of one call, now; on_free is called when its place is free again."""
        call = asyncio.create_task(self._call(helds), name=f"call-{helds[0].job.claimed.fence}")
        self._calls.add(call)

        def ended(_: asyncio.Task[None]) -> None:
            self._calls.discard(call)
            on_free()

        call.add_done_callback(ended)

    def start(self) -> None:
        """Start the slots and the sweep."""
        self._slots = [asyncio.create_task(self._slot(), name=f"slot-{n}") for n in range(self.count)]
        self._slots.append(asyncio.create_task(self._sweep(), name="sweep"))

    async def close(self) -> None:
        """End the slots; running handlers must have been stopped before."""
        tasks = [*self._slots, *self._calls]
        for task in tasks:
            task.cancel()
        _, self.deaf = await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)
        self._threads.close()

    async def settle(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """Wait until nothing runs, for so long at most, or until somebody is in a hurry."""
        if not self._holding.running:
            return
        self._settling = asyncio.Event()
        waits = [asyncio.create_task(event.wait()) for event in (self._settling, hurry) if event is not None]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def watch(self) -> None:
        """Raises if a slot ever ends: its job would be held for ever behind a healthy lease."""
        ended, _ = await asyncio.wait(self._slots, return_when=asyncio.FIRST_COMPLETED)
        raise LivewellError(f"{len(ended)} slots ended; the worker ends so that a new process can take over")

    def wake(self, jobs: int) -> None:
        """Jobs came into the buffer."""
        while jobs > 0 and self._idle:
            waiter = self._idle.pop()
            if not waiter.done():
                waiter.set_result(None)
                jobs -= 1

    async def _slot(self) -> None:
        buffer, running = self._holding.buffer, self._holding.running
        mine = asyncio.current_task()
        loop = asyncio.get_running_loop()
        while True:
            while not buffer:
                waiter = loop.create_future()
                self._idle.append(waiter)
                await waiter
            if self._turns == 0:
                await asyncio.sleep(0)  # handlers that never wait must not keep the loop from everybody else
                continue
            self._turns -= 1
            if self._turns == 0:
                loop.call_soon(self._new_turns)
            held = buffer.popleft()
            held.slot, held.started = mine, time.monotonic()
            fence = held.job.claimed.fence
            running[fence] = held
            try:
                outcome = await self._outcome(held, mine)
            finally:
                running.pop(fence, None)
                held.slot = None
            self._on_result(held, outcome)
            if self._settling is not None and not running:
                self._settling.set()

    async def _call(self, helds: Sequence[Held]) -> None:
        running, mine = self._holding.running, asyncio.current_task()
        for held in helds:
            held.slot, held.started = mine, time.monotonic()
            running[held.job.claimed.fence] = held
        self._holding.in_calls += len(helds)
        try:
            outcomes = await self._call_outcomes(helds, mine)
        finally:
            self._holding.in_calls -= len(helds)
            for held in helds:
                running.pop(held.job.claimed.fence, None)
                held.slot = None
        for held, outcome in zip(helds, outcomes, strict=True):
            self._on_result(held, outcome)
        if self._settling is not None and not running:
            self._settling.set()

    async def _call_outcomes(self, helds: Sequence[Held], mine: asyncio.Task[None] | None) -> Sequence[RunEnd]:
        """As _outcome, for all jobs of a call: they share whatever ends it."""
        try:
            for held in helds:
                # a look: a late call need not even begin. It is spent when the request is written.
                held.job.check_permit()
            return await run_call([held.job for held in helds], self._tasks, self._run_sync)
        except PermitLate as late:
            return [Released(str(late))] * len(helds)
        except asyncio.CancelledError as error:
            stopped = next((held for held in helds if held.stop_reason is not None), None)
            if mine is None or (stopped is None and mine.cancelling()):
                raise
            if stopped is not None:
                mine.uncancel()
            return [_ended_by(held, stopped, error) for held in helds]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded as the jobs' failure; see _outcome
            if isinstance(error, OutOfMemory | MemoryError):
                self.starved.set()
                return [Failed(_NO_MEMORY)] * len(helds)
            return [_unspeakable(error)] * len(helds)

    def _new_turns(self) -> None:
        self._turns = _TURNS

    async def _outcome(self, held: Held, mine: asyncio.Task[None] | None) -> Outcome | None:
        """Run it to whatever end; only the end of the slot itself passes through."""
        try:
            return await run_job(held.job, self._tasks, self._run_sync)
        except asyncio.CancelledError as error:
            if mine is None or (held.stop_reason is None and mine.cancelling()):
                raise  # the slot itself is to end
            if held.stop_reason is not None:
                mine.uncancel()
                return _stopped(held, error)
            return failed(error, _CANCELLED_ITSELF)
        except (OutOfMemory, MemoryError):
            self.starved.set()
            return Failed(_NO_MEMORY)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded as the job's failure; a slot must outlive whatever a handler does (sys.exit, no memory)
            return _unspeakable(error)

    async def _run_sync(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        running = self._threads.run(function, arguments)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not running.done():
                self.stuck += 1
                running.add_done_callback(self._unstuck)
                if self.stuck >= self._stuck_threads_max:
                    self.too_many_stuck.set()
            raise

    def _unstuck(self, finished: asyncio.Future[Any]) -> None:
        self.stuck -= 1
        if not finished.cancelled():
            finished.exception()  # its job was settled long ago; retrieve it so that asyncio does not complain

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = time.monotonic()
            for held in list(self._holding.running.values()):
                if now - held.started > held.timeout_seconds:
                    held.stop(StopReason.TIMEOUT)


def _unspeakable(error: BaseException) -> Failed:
    """The failure of a handler that ended by something that is no Exception, such as sys.exit."""
    try:
        return failed(error, f"the handler raised {type(error).__name__}, which is meant to end a process")
    except Exception:  # noqa: BLE001 - converted: whatever cannot be described must still end the job
        return Failed(_UNSPEAKABLE)


def _ended_by(held: Held, stopped: Held | None, error: BaseException) -> Outcome | None:
    """What becomes of one job of a call that was cancelled because of one of them."""
    if stopped is None:
        return failed(error, _CANCELLED_ITSELF)
    if held.stop_reason is None and stopped.stop_reason is StopReason.CANCEL:
        return Released("its call was cancelled for another job")  # asked to end one of them, the rest are not at fault
    return _stopped(held if held.stop_reason is not None else stopped, error)


def _stopped(held: Held, error: BaseException) -> Outcome | None:
    match held.stop_reason:
        case StopReason.TIMEOUT:
            text = f"ran longer than its timeout of {held.timeout_seconds:g} s"
            # Where it hung. A thread cannot be looked into: there the error passed our code only.
            return failed(error, text) if passed_users_code(error) else Failed(text, cause="timeout")
        case StopReason.CANCEL:
            return Stopped()
        case StopReason.SHUTDOWN:
            return Released("the worker stopped")
        case _:
            return None
