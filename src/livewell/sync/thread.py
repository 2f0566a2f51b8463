"""The portal's own thread with its own event loop.

    new ──start()──▶ serving ──stop()──▶ calls cancelled ──▶ last() ──▶ ended

It is a daemon: the interpreter waits for other threads before it runs atexit, and would wait for
ever for this one. stop() needs no new thread, because Python 3.12 refuses one during atexit: the
loop's executor is let go, not joined.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from livewell.sync.portal import Portal

_DRAIN_SECONDS, _LAST_SECONDS, _LEFT_SECONDS = 3.0, 5.0, 1.0
STOP_SECONDS = _DRAIN_SECONDS + _LAST_SECONDS + _LEFT_SECONDS + 1


class PortalThread:
    """One thread, one loop, one portal into it."""

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]], wait_seconds: float) -> None:
        self._last = last
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="livewell-sync", daemon=True)
        self.portal = Portal(self._loop, wait_seconds)

    def start(self) -> None:
        """Serve; calls may be made at once."""
        self._thread.start()

    def stop(self) -> None:
        """Cancel what runs, do the last thing, end.

        A loop that does not react is left to the end of the process.
        """
        if self._thread.is_alive():
            self.portal.shut()
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(STOP_SECONDS)

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self.portal.shut()
            self._loop.close()

    async def _main(self) -> None:
        await self._stopping.wait()
        await self.portal.drain(_DRAIN_SECONDS)
        try:
            await asyncio.wait_for(self._last(), _LAST_SECONDS)
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=_LEFT_SECONDS)
