"""One coroutine in the loop, and the thread that waits for it.

    new ──start()──▶ running ──▶ done ──result()──▶ its answer or its exception, in the waiting thread
     └────leaving the block─┴──▶ cancelled

The block makes an interrupt safe: if the thread leaves it early (by Ctrl-C, or by the bound on its
wait), the coroutine is cancelled, also when it has not started yet. While it waits, the thread runs
what the coroutine asks of it: a caller's own connection may be used in no other thread.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from livewell.errors import DatabaseUnavailable, LivewellError

R = TypeVar("R")
A = TypeVar("A")


class Send(Protocol):
    """Has a function called in the loop; raises LivewellError when the loop takes no more."""

    def __call__(self, function: Callable[[], object]) -> None:
        """Call it there, soon."""


class Call(Generic[R]):
    """A context manager: start it inside, and leave only when it is done or no longer wanted."""

    def __init__(
        self, make: Callable[[Call[R]], Coroutine[Any, Any, R]], send: Send, running: set[asyncio.Task[Any]]
    ) -> None:
        self._make = make
        self._send = send
        self._running = running
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._task: asyncio.Task[R] | None = None
        self._unwanted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    # -- in the caller's thread -------------------------------------------------------------------

    def start(self) -> None:
        """Have the coroutine made and run."""
        self._send(self._begin)

    def wait(self, seconds: float) -> None:
        """Do what the coroutine asks, until it is done or says that it is ready."""
        until = time.monotonic() + seconds
        try:
            while (errand := self._inbox.get(timeout=max(0.0, until - time.monotonic()))) is not None:
                errand()
        except queue.Empty:
            raise DatabaseUnavailable(
                f"app.sync: no answer within {seconds:g} s (LIVEWELL_SYNC_WAIT_SECONDS): "
                "the call was cancelled, and the outcome of a write is unknown"
            ) from None

    def result(self) -> R:
        """The answer, after wait()."""
        if self._task is None or self._task.cancelled():
            raise LivewellError("app.sync: the call was cancelled: app.sync, or the app's event loop, was closed")
        return self._task.result()

    def cancel(self) -> bool:
        """Cancel what is not done yet; False when there is no need, or nobody to do it."""
        self._unwanted = True
        if self._task is not None and self._task.done():
            return False
        with suppress(LivewellError):
            self._send(self._cancel)
            return True
        return False

    # -- in the loop ------------------------------------------------------------------------------

    def ready(self) -> None:
        """Let the waiting thread go on although the coroutine is not done."""
        self._inbox.put(None)

    async def ask(self, function: Callable[[], A]) -> A:
        """Have the waiting thread call this, and answer what it answers."""
        answer: Future[A] = Future()
        answered = asyncio.Event()
        self._inbox.put(lambda: self._answer(function, answer, answered))
        await answered.wait()
        return answer.result(timeout=0)

    def _answer(self, function: Callable[[], A], answer: Future[A], answered: asyncio.Event) -> None:
        try:
            answer.set_result(function())
        except Exception as error:  # noqa: BLE001 - raised in the coroutine that asked
            answer.set_exception(error)
        self._send(answered.set)

    def _begin(self) -> None:
        if not self._unwanted:
            self._task = asyncio.get_running_loop().create_task(self._main())
            self._running.add(self._task)
            self._task.add_done_callback(self._end)

    async def _main(self) -> R:
        return await self._make(self)  # made in here, so that an error while making it is the call's error

    def _end(self, task: asyncio.Task[R]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: nobody may be waiting any more, and asyncio would complain
        self._inbox.put(None)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
