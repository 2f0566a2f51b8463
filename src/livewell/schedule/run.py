"""One run, from its beginning in the database to its end there.

    begun ──trust over already (we stood still)──▶ given up, the handler never starts
      ├──the handler of an earlier run goes on here──▶ failed, the handler never starts
      │
    handler ──returns──▶ succeeded      ──raises──▶ failed      ──timeout, stop──▶ cancelled ──▶ failed
      ├──a third of the lease──▶ renewed ──▶ handler
      └──renewal refused, or the database away for a lease──▶ cancelled, nothing is written: it is crashed, or will be

Like a singleton, a term is trusted for less than its lease, on the monotonic clock, from before the
call that got it. What is written at the end asks for the fence under the row's lock, so a process
that stood still writes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import structlog

from livewell.db.link import Link
from livewell.errors import DatabaseError
from livewell.loops import jittered
from livewell.queue.run import describe
from livewell.queue.worker.threads import Threads
from livewell.schedule.definition import Run, ScheduleDefinition
from livewell.telemetry.repeats import Repeats
from livewell.telemetry.tracebacks import traceback_of

log = structlog.get_logger("livewell.schedule")

_RENEW = "SELECT livewell.renew_run(%s, %s, %s)"
_FINISH = "SELECT livewell.finish_run(%s, %s, %s, %s, %s)"
_MARGIN = 0.2  # of the lease: what we stop trusting early
_THIRD = 1 / 3
_CANCEL_SECONDS = 2.0  # for a cancelled handler to clean up
_TRACEBACK_BYTES_MAX = 1800  # with the error's own 2,000 characters it fits into what finish_run keeps
_ROWS_MAX = 2**63 - 1
_GOES_ON = "the handler of an earlier run still goes on in this worker and cannot be stopped; start the worker again"

Ended = Literal["succeeded", "failed", "lost"]


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that the database has given us.

    asked: the time before the call that got it was sent, on the monotonic clock.
    """

    run: Run
    fence: int
    asked: float


class Running:
    """A run under way. `stop` ends it early, as failed."""

    def __init__(
        self,
        link: Link,
        threads: Threads,
        definition: ScheduleDefinition,
        begun: Begun,
        *,
        lease_seconds: float,
        left_behind: dict[str, asyncio.Future[Any]],
        warn: Callable[[str, str], None],
        repeats: Repeats,
    ) -> None:
        self._link = link
        self._threads = threads
        self._definition = definition
        self._begun = begun
        self._lease_seconds = lease_seconds
        self._left_behind = left_behind
        self._warn = warn
        self._repeats = repeats
        self._asked = begun.asked
        self._stopped = asyncio.Event()
        self._thread: asyncio.Future[Any] | None = None

    def stop(self) -> None:
        """The process ends: the handler is cancelled."""
        self._stopped.set()

    async def go(self) -> Ended:
        """Run the handler to its end, and write that down."""
        if self._left() <= 0:
            self._warn("a run was given up: the process stood still before its handler began", self._definition.name)
            return "lost"
        earlier = self._left_behind.get(self._definition.name)
        if earlier is not None and not earlier.done():
            return await self._finish(succeeded=False, error=_GOES_ON, rows=None)
        handler = asyncio.ensure_future(self._handler())
        try:
            problem = await self._watch(handler)
        finally:
            if not handler.done():
                await self._cancel(handler)
        if problem == "lost":
            self._warn("a run lost its lease, and its handler was stopped", self._definition.name)
            return "lost"
        return await self._finish(*_outcome(handler, problem))

    def _left(self) -> float:
        """For how many seconds we may still believe that the lease is ours."""
        return self._asked + self._lease_seconds * (1 - _MARGIN) - time.monotonic()

    async def _handler(self) -> Any:
        arguments = {"run": self._begun.run} if self._definition.takes_run else {}
        if self._definition.is_async:
            return await self._definition.function(**arguments)
        self._thread = self._threads.run(self._definition.function, arguments)
        # Shielded: a thread does not end because nobody waits for it any more, and must not be
        # counted as free.
        return await asyncio.shield(self._thread)

    async def _watch(self, handler: asyncio.Future[Any]) -> str | None:
        """Wait for the handler and renew meanwhile.

        Answers what ended it early, if anything did.
        """
        deadline = time.monotonic() + self._definition.timeout_seconds
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            while True:
                now = time.monotonic()
                renewal = max(0.01, self._asked + self._lease_seconds * _THIRD - now)
                await asyncio.wait(
                    [handler, stopped], timeout=min(renewal, max(0.0, deadline - now)), return_when="FIRST_COMPLETED"
                )
                if handler.done():
                    return None
                if stopped.done():
                    return "the worker was stopped before it ended"
                if time.monotonic() >= deadline:
                    return f"it did not end within its timeout of {self._definition.timeout_seconds:g} s"
                if not await self._renew():
                    return "lost"
        finally:
            stopped.cancel()

    async def _renew(self) -> bool:
        if time.monotonic() < self._asked + self._lease_seconds * _THIRD:
            return True
        asked = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self._left())):
                rows = await self._link.call(
                    _RENEW, (self._begun.run.id, self._begun.fence, timedelta(seconds=self._lease_seconds))
                )
        except (DatabaseError, TimeoutError) as error:
            log.warning("a lease was not renewed yet", schedule=self._definition.name, error=str(error))
            await asyncio.sleep(min(max(0.0, self._left()), jittered(self._lease_seconds, 0.02, 0.05)))
            return self._left() > 0
        self._asked = asked
        return bool(rows[0][0])

    def _tell(self, error: str) -> None:
        name, said = self._definition.name, error.partition("\n")
        if self._repeats.passes(f"{name}: {said[0][:200]}"):
            told = {"exception": said[2]} if said[2] else {}
            log.error("run failed", schedule=name, run=self._begun.run.id, error=said[0], **told)

    async def _cancel(self, handler: asyncio.Future[Any]) -> None:
        """Stop it.

        One that does not listen (a thread never does) is left behind, and said to be.
        """
        handler.cancel()
        await asyncio.wait([handler], timeout=_CANCEL_SECONDS)
        going = handler if self._thread is None else self._thread
        if not going.done():
            self._left_behind[self._definition.name] = going
            going.add_done_callback(_hear)
            self._warn(
                "a handler goes on after its run has ended; no other begins here meanwhile", self._definition.name
            )

    async def _finish(self, succeeded: bool, error: str | None, rows: int | None) -> Ended:  # noqa: FBT001 - a column
        """Write its end; while the database is away, try again as long as the lease may be ours."""
        if error is not None:
            self._tell(error)
        while True:
            try:
                written = await self._link.call(
                    _FINISH, (self._begun.run.id, self._begun.fence, succeeded, error, rows)
                )
            except DatabaseError as problem:
                log.warning("the end of a run was not written yet", schedule=self._definition.name, error=str(problem))
                if self._asked + self._lease_seconds < time.monotonic():
                    return "lost"
                await asyncio.sleep(jittered(min(1.0, self._lease_seconds / 10)))
                continue
            if not written[0][0]:
                self._warn("the end of a run was fenced: its lease had run out", self._definition.name)
                return "lost"
            return "succeeded" if succeeded else "failed"


def _hear(going: asyncio.Future[Any]) -> None:
    """The run is already settled: retrieve the exception so that asyncio does not log it."""
    if not going.cancelled():
        going.exception()


def _outcome(handler: asyncio.Future[Any], problem: str | None) -> tuple[bool, str | None, int | None]:
    """Whether it succeeded, the error in words, and the rows it says it has touched."""
    if problem is not None:
        return False, problem, None
    if handler.cancelled():
        return False, "its handler was cancelled", None
    error = handler.exception()
    if error is not None:
        if not isinstance(error, Exception):
            raise error
        # One text, as the row has it: the first line for lists, the traceback below it.
        return False, f"{describe(error)}\n{traceback_of(error, bytes_max=_TRACEBACK_BYTES_MAX)}", None
    answer = handler.result()
    counts = isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer <= _ROWS_MAX
    return True, None, answer if counts else None
