"""The way from any thread into a running event loop.

Refused, with what to do instead: a thread that runs an event loop itself (waiting would stop that
loop, perhaps the very one that must answer), a portal that was closed, and a portal from before a
fork (its loop runs in the parent only; a call would wait for ever).
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from livewell.errors import LivewellError
from livewell.sync.call import Call

R = TypeVar("R")


class Portal:
    """Runs coroutines in one loop for any number of threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wait_seconds: float) -> None:
        self.loop = loop
        self.wait_seconds = wait_seconds
        self._process = os.getpid()
        self._gate = threading.Lock()
        self._shut = False
        self._running: set[asyncio.Task[Any]] = set()

    def run(self, make: Callable[[Call[R]], Coroutine[Any, Any, R]]) -> R:
        """Run one coroutine to its end and answer what it answers."""
        with self.call(make) as call:
            call.start()
            call.wait(self.wait_seconds)
            return call.result()

    def call(self, make: Callable[[Call[R]], Coroutine[Any, Any, R]]) -> Call[R]:
        """A coroutine that is to run in the loop; nothing happens before its start()."""
        refuse_event_loop()
        return Call(make, self.send, self._running)

    def send(self, function: Callable[[], object]) -> None:
        """Have it called in the loop."""
        if self._process != os.getpid():
            raise LivewellError("app.sync: this was opened before the fork, in the parent process: open a new one here")
        with self._gate:  # what is sent before shut() runs before what is sent after it
            if self._shut or self.loop.is_closed():
                raise LivewellError("app.sync: closed meanwhile")
            self.loop.call_soon_threadsafe(function)

    @property
    def is_open(self) -> bool:
        """Whether it takes calls."""
        return not self._shut

    def shut(self) -> None:
        """Take no more; what was taken goes on."""
        with self._gate:
            self._shut = True

    async def drain(self, seconds: float) -> None:
        """Cancel what still runs, and give it this long to tidy up."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)


def refuse_event_loop() -> None:
    """Raise in a thread that runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise LivewellError(
        "app.sync waits, and this thread runs an event loop that would stand still: use the async API here "
        "(await task.enqueue(…), async with app.transaction(), await app.admin.…), or another thread "
        "(asyncio.to_thread)"
    )
