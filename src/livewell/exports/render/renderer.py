"""The pool of rendering children: one per process, used by every render of it.

    render() ──place free──▶ take a child ──▶ ask it ──answer──▶ idle again
        │                       │                └──killed, refused at its start──▶ a new spare
        └── line full: busy     └── none idle: wait for the spare, or start one

    child: starting ──▶ idle ──▶ busy ──▶ idle … ──50 renders, 300 MB, 60 s unused──▶ ended

There are at most `at_once` busy children, and beside them one that is idle or starting, so that a
render never waits for a start. A child that dies while it starts is counted, and the next start
waits: 0.1 s · 2ⁿ, at most 30 s. A render that meets such a pause fails with the same reason instead
of waiting for longer than its own deadline.

Why children are used again, and started before they are needed: to start one costs 60 ms of
processor time, and 160 ms with typst, fonts and templates warm; a warm one adds 0.1 ms to a render,
both pipes included (p50 of 200, 3 KB documents). 300 one-page résumés on two cores: 44 a second
beside other work. Why not for ever: typst never forgets what it has computed, about 0.5 MB a
document; in 50 renders a child grew from 57 MB to at most 114 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from livewell.exports.render.child_process import ChildProcess, Setup
from livewell.exports.render.rendered import RenderBusy, Rendered, RenderKilled, RenderRefused

WAITING_MAX = 1_000  # renders that may wait for a place, by default
IDLE_SECONDS = 60.0  # then all idle children but one end
PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 30.0
_CPU_SPARE_SECONDS = 2


@dataclass(frozen=True, slots=True)
class RenderStats:
    """What the pool does now, and what it has done. rss: bytes of memory of all children."""

    children: int
    busy: int
    spare: int
    waiting: int
    renders: int
    starts: int
    failed_starts: int
    killed_by_reason: Mapping[str, int]
    rss: int
    guards: tuple[str, ...]


class Renderer:
    """Renders documents in children; an async context manager.

    at_once: children that render at the same time.
    seconds: after which a render is killed.
    bytes_max: of a finished file.
    recycle_after, recycle_bytes: renders and bytes of memory after which a child is replaced.
    functions: warmed before the first render; others are warmed when they are first asked for.
    fonts: folders with fonts beside those that the functions bring.
    """

    def __init__(
        self,
        *,
        at_once: int,
        seconds: float,
        bytes_max: int,
        recycle_after: int,
        recycle_bytes: int,
        functions: Sequence[str] = (),
        fonts: Sequence[str] = (),
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._at_once = at_once
        self._seconds = seconds
        self._recycle_after = recycle_after
        self._recycle_bytes = recycle_bytes
        self._waiting_max = waiting_max
        self._functions = list(functions)
        self._known = set(functions)  # asked for by the owner, or loaded once
        cpu = recycle_after * int(seconds + _CPU_SPARE_SECONDS)
        self._setup = Setup(tuple(fonts), bytes_max, memory_bytes=recycle_bytes, cpu_seconds=cpu)
        self._places = asyncio.Semaphore(at_once)
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._starting: asyncio.Task[ChildProcess] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._trim: asyncio.TimerHandle | None = None
        self._failed_in_a_row = 0
        self._not_before = 0.0
        self._waiting = 0
        self._closed = False
        self._counts: Counter[str] = Counter()
        self._killed: Counter[str] = Counter()
        self._guards: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        self._order_spare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def render(self, function: str, document: bytes, options: bytes, *, seconds: float | None = None) -> Rendered:
        """The file, or RenderRefused, RenderKilled, RenderBusy.

        function: "package.module:name". seconds: less time than the pool allows.
        """
        if self._closed or self._waiting >= self._waiting_max:
            raise RenderBusy("renders are not accepted now: the line is full or the worker is ending")
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            limit = min(self._seconds, seconds or self._seconds)
            child = await self._take(function, limit)
            return await self._use(child, function, document, options, limit)
        except RenderKilled as killed:
            self._killed[killed.reason] += 1
            raise
        finally:
            self._places.release()
            self._order_spare()

    async def _take(self, function: str, seconds: float) -> ChildProcess:
        """A warm child that knows the function. The one used last comes first: its pages are warm."""
        if function not in self._functions:
            self._functions.append(function)
        while not self._closed:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive and function in child.functions:
                    return child
                self._in_background(child.kill())
            start = self._start_one(seconds)
            # The start belongs to the pool: a caller that is cancelled leaves it to the next.
            await asyncio.shield(start)
        raise RenderBusy("renders are not accepted now: the worker is ending")

    async def _use(
        self, child: ChildProcess, function: str, document: bytes, options: bytes, seconds: float
    ) -> Rendered:
        self._busy.add(child)
        self._counts["renders"] += 1
        self._order_spare()
        try:
            return await child.ask(function, document, options, seconds=seconds, bytes_max=self._setup.bytes_max)
        finally:
            self._busy.discard(child)
            self._keep_or_end(child)

    def _keep_or_end(self, child: ChildProcess) -> None:
        used_up = child.renders >= self._recycle_after or child.memory_bytes >= self._recycle_bytes
        if self._closed or used_up or not child.is_alive:
            self._in_background(child.kill())
            return
        self._idle.append(child)
        if len(self._idle) > 1:
            self._trim = self._trim or asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        """After a quiet minute one warm child is enough."""
        self._trim = None
        if self._busy or self._waiting:
            self._trim = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle)
            return
        while len(self._idle) > 1:
            self._in_background(self._idle.pop(0).kill())

    def _order_spare(self) -> None:
        """One child more than is busy, unless a start has just failed: then the next render orders it."""
        if self._closed or self._idle or self._starting or not self._functions:
            return
        if len(self._busy) <= self._at_once:
            self._start_one(PAUSE_SECONDS_MAX).add_done_callback(_seen)

    def _start_one(self, seconds: float) -> asyncio.Task[ChildProcess]:
        """The start that is under way, or a new one.

        A pause longer than `seconds` is not waited for: RenderKilled at once.
        """
        if self._not_before - time.monotonic() > seconds:
            raise RenderKilled("died")
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._tasks.add(self._starting)
            self._starting.add_done_callback(self._tasks.discard)
        return self._starting

    async def _start(self) -> ChildProcess:
        try:
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            self._counts["starts"] += 1
            child = await ChildProcess.start(tuple(self._functions), self._setup)
        except (RenderKilled, RenderRefused, OSError) as error:
            self._counts["failed_starts"] += 1
            pause = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2**self._failed_in_a_row)
            self._failed_in_a_row = min(self._failed_in_a_row + 1, 20)
            self._not_before = time.monotonic() + pause
            # One function that cannot be loaded must not keep every later child from starting.
            self._functions = [name for name in self._functions if name in self._known]
            if isinstance(error, OSError):
                raise RenderKilled("died") from None
            raise
        finally:
            self._starting = None
        self._failed_in_a_row = 0
        self._guards = child.guards
        self._known |= child.functions
        if self._closed:
            await child.kill()
        else:
            self._idle.append(child)
        return child

    def _in_background(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End and reap every child; renders that are under way end with RenderKilled. Repeatable."""
        self._closed = True
        if self._trim is not None:
            self._trim.cancel()
        for child in [*self._busy, *self._idle]:
            self._in_background(child.kill())
        self._idle.clear()
        if self._starting is not None:
            self._starting.cancel()
        while self._tasks:
            with contextlib.suppress(Exception):
                await asyncio.wait(set(self._tasks))

    def stats(self) -> RenderStats:
        """What gauges and the doctor read. It asks the kernel for the memory of each child."""
        children = [*self._busy, *self._idle]
        return RenderStats(
            children=len(children) + (self._starting is not None),
            busy=len(self._busy),
            spare=len(self._idle),
            waiting=self._waiting,
            renders=self._counts["renders"],
            starts=self._counts["starts"],
            failed_starts=self._counts["failed_starts"],
            killed_by_reason=dict(self._killed),
            rss=sum(child.read_memory() for child in children),
            guards=self._guards,
        )


def _seen(start: asyncio.Task[ChildProcess]) -> None:
    """A spare that failed is counted already: asyncio need not complain that nobody asked."""
    if not start.cancelled():
        start.exception()
