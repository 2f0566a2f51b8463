"""Threads for blocking handlers: daemons, reused, bounded.

Not a ThreadPoolExecutor: that one joins its threads when the interpreter ends, so a single handler
that hangs would keep a stopped worker's process alive for ever.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

_TRIES, _TRY_SECONDS = 100, 0.1

_Work = tuple[Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any]]


class Threads:
    """Runs functions in up to `limit` threads; run() answers with a future of the calling loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._started = 0
        self._busy = 0

    def run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> asyncio.Future[Any]:
        """Start it; called from the event loop's thread only."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        context = contextvars.copy_context()
        self._busy += 1
        future.add_done_callback(self._count_down)
        if self._busy > self._started and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._serve, name=f"livewell-job-{self._started}", daemon=True).start()
        self._work.put((lambda: context.run(function, **arguments), loop, future))
        return future

    def close(self) -> None:
        """Let idle threads end; busy ones end with the process at the latest."""
        for _ in range(self._started):
            self._work.put(None)

    def _count_down(self, _: asyncio.Future[Any]) -> None:
        self._busy -= 1

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            function, loop, future = work
            try:
                result, error = function(), None
            except BaseException as raised:  # noqa: BLE001 - handed to whoever awaits the future
                result, error = None, raised
            if not _hand_over(loop, future, result, error):
                return


def _hand_over(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: object, error: BaseException | None
) -> bool:
    """Tell the loop; False when it is closed and nobody waits any more.

    Out of memory it tries again for a while: the job waits for this, at most its timeout.
    """
    for _ in range(_TRIES):
        try:
            loop.call_soon_threadsafe(_deliver, future, result, error)
        except MemoryError:
            if error is not None:
                # Its frames may be what holds the memory: without this we would wait for ourselves.
                error.__traceback__ = error.__context__ = None
            time.sleep(_TRY_SECONDS)
        except RuntimeError:
            return False
        else:
            return True
    return False


def _deliver(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, Exception):
        future.set_exception(error)
    else:
        wrapped = RuntimeError(f"the handler raised {error!r}")
        wrapped.__cause__ = error
        future.set_exception(wrapped)
