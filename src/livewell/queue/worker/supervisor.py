"""Several worker processes under one command.

Each place has one child at a time:

    starting ──▶ running ──ended──▶ pausing ──after the back-off──▶ starting
                    │                  │
                   stop               stop ──▶ stopped
                    ▼
                stopping ──ended──▶ stopped
                    └──patience over, or a third stop──▶ killed by its number ──▶ stopped

A stop is passed on as SIGTERM, a second one too: the child hands its jobs back at once. Children
lead sessions of their own, so a Ctrl-C in the terminal reaches them once, through us, and not
twice. If we are killed ourselves, their standard input ends, and they stop by that.

A child that ends with 2 says that it is wrongly configured: starting it again would only say so
again, so everything stops.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

log = structlog.get_logger("livewell.supervisor")

_MISCONFIGURED = 2
_STOPPED = (0, -signal.SIGTERM)  # the latter: it was still importing, and held nothing


@dataclass(frozen=True, slots=True)
class Restart:
    """Seconds before a dead child is replaced: base · 2ⁿ up to the cap, ± 20 %.

    n starts again after a calm run.
    """

    base_seconds: float = 0.5
    cap_seconds: float = 30.0
    calm_seconds: float = 60.0

    def pause(self, deaths: int) -> float:
        """How long to wait after this many deaths in a row, from 1."""
        plain: float = min(self.cap_seconds, self.base_seconds * 2.0 ** min(deaths - 1, 20))
        return plain * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, so that not all come back in the same moment


class Supervisor:
    """Keeps so many children alive until stop() is called.

    `command(place)` is the argument list of a place's child.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        processes: int,
        *,
        patience_seconds: float,
        restart: Restart | None = None,
    ) -> None:
        self._command = command
        self._processes = processes
        self._patience_seconds = patience_seconds
        self._restart = restart or Restart()
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._stops = 0
        self._code = 0
        self.restarts = 0

    def stop(self) -> None:
        """Ask the children to stop; a second time to hurry; a third time kills them."""
        self._stops += 1
        self._stopping.set()
        for child in self._children.values():
            _send(child, signal.SIGKILL if self._stops >= 3 else signal.SIGTERM)

    async def run(self) -> int:
        """Run until stopped; 0 when every child ended well, 1 when one had to be killed or failed, 2 when misconfigured."""
        log.info("supervisor started", processes=self._processes)
        try:
            async with asyncio.TaskGroup() as places:
                for place in range(1, self._processes + 1):
                    places.create_task(self._keep(place), name=f"place-{place}")
        finally:
            for child in self._children.values():
                _send(child, signal.SIGKILL)  # only reached with children when we are cancelled
        log.info("supervisor stopped", code=self._code, restarts=self.restarts)
        return self._code

    async def _keep(self, place: int) -> None:
        deaths = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._run_child(place)
            if self._stopping.is_set():
                self._code = self._code or (0 if code in _STOPPED else 1)
                return
            if code == _MISCONFIGURED:
                log.error("a worker process is wrongly configured; stopping all", place=place)
                self._code = _MISCONFIGURED
                self.stop()
                return
            deaths = 1 if time.monotonic() - started >= self._restart.calm_seconds else deaths + 1
            await self._pause(place, code, deaths)

    async def _run_child(self, place: int) -> int:
        """Start a child and wait for its end; once stopping, only as long as our patience lasts."""
        child = await asyncio.create_subprocess_exec(
            *self._command(place), stdin=asyncio.subprocess.PIPE, start_new_session=True
        )
        self._children[place] = child
        if self._stopping.is_set():  # asked while it was being started
            _send(child, signal.SIGTERM)
        log.info("worker process started", place=place, pid=child.pid)
        ended = asyncio.create_task(child.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([ended, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await asyncio.wait([ended], timeout=self._patience_seconds)
            if not ended.done():
                log.error("worker process did not stop; killing it", place=place, pid=child.pid)
                _send(child, signal.SIGKILL)
            return await ended
        finally:
            stopping.cancel()
            if ended.done():
                del self._children[place]

    async def _pause(self, place: int, code: int, deaths: int) -> None:
        pause = self._restart.pause(deaths)
        self.restarts += 1
        log.warning("worker process ended; starting another", place=place, code=code, pause_seconds=round(pause, 2))
        try:
            async with asyncio.timeout(pause):
                await self._stopping.wait()
        except TimeoutError:
            return


def _send(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Signal a child that has not been reaped: its number cannot be a stranger's yet."""
    if child.returncode is None:
        try:
            child.send_signal(number)
        except ProcessLookupError:
            return
