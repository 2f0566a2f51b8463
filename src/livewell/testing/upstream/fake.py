"""The test's side of the fake upstream: start it, tell it what to do, kill it, read its log.

started ──stop, kill──▶ down ──restart──▶ started (same port, same log, versions go on, behaviours forgotten)
   ├──freeze──▶ deaf: the kernel accepts, nobody answers ──thaw──▶ started
"""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from livewell.errors import LivewellError
from livewell.testing.http import exchange
from livewell.testing.processes import ChildProcess
from livewell.testing.upstream.behaviour import Behaviour
from livewell.testing.upstream.call import CallLog
from livewell.testing.upstream.script import Limit
from livewell.testing.upstream.server import CONTROL

__all__ = ["FakeUpstream", "UpstreamFailed"]

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 10.0
ORDER_SECONDS_MAX = 10.0


class UpstreamFailed(LivewellError):
    """The fake upstream did not take an order.

    It is down, frozen, or the order made no sense to it.
    """


class FakeUpstream:
    """An HTTP server in its own process.

    `async with FakeUpstream(folder) as upstream: get(upstream.url + "/quote?symbol=A")`.

    Its log is folder/upstream.log; a seed makes every draw (share, jitter) repeatable. With
    calls_max and window_seconds it refuses by itself what is above that limit, per credential.
    """

    def __init__(
        self, folder: Path, *, seed: int = 0, calls_max: int | None = None, window_seconds: float = 60.0
    ) -> None:
        self.log = CallLog(folder / "upstream.log")
        self.port = 0
        self._path = folder / "upstream.log"
        self._seed = seed
        self._limit = Limit(calls_max, window_seconds) if calls_max is not None else None
        self._child: ChildProcess | None = None

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None and self._child is not None:
            error.add_note(self._child.describe())
        await asyncio.to_thread(self._close)

    @property
    def url(self) -> str:
        """Where it listens; the same after a restart."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def process(self) -> ChildProcess:
        """Its process, to freeze and thaw."""
        if self._child is None:
            msg = "the fake upstream is down: call restart(), or use it inside `async with FakeUpstream(folder)`"
            raise UpstreamFailed(msg)
        return self._child

    # ── orders: in force when they return ──

    async def behave(self, **wanted: Any) -> str:
        """Answer calls as a Behaviour with these fields says; the name that the log will show for
        them comes back.
        """
        answer = await self._order({"behave": json.loads(Behaviour(**wanted).encode())})
        return str(answer["name"])

    async def forget(self) -> None:
        """Drop every behaviour: each key is answered with its next version again."""
        await self._order({"forget": True})

    async def limit(self, calls_max: int | None, window_seconds: float = 60.0) -> None:
        """Refuse with 429, per credential, what is above so many calls in any window; None: no
        longer.
        """
        self._limit = Limit(calls_max, window_seconds) if calls_max is not None else None
        await self._order({"limit": asdict(self._limit) if self._limit else None})

    # ── life and death ──

    async def stop(self) -> None:
        """End it in an orderly way: open calls are logged as stopped."""
        self.process.terminate()
        await asyncio.to_thread(self.process.wait, STOP_SECONDS_MAX)
        await asyncio.to_thread(self._close)

    async def kill(self) -> None:
        """SIGKILL: open calls stay open in the log until the restart shows them as killed."""
        await asyncio.to_thread(self._close)

    async def restart(self) -> None:
        """Start it again on the same port, killing it first if it runs."""
        await self.kill()
        await self._start()

    async def _start(self) -> None:
        arguments = ["-m", "livewell.testing.upstream", str(self._path), f"--port={self.port}", f"--seed={self._seed}"]
        child = self._child = ChildProcess(arguments)
        try:
            line = await asyncio.to_thread(lambda: child.start().wait_for("listening on", START_SECONDS_MAX))
        except BaseException:
            await asyncio.to_thread(self._close)
            raise
        self.port = int(line.rsplit(" ", 1)[1])
        if self._limit is not None:
            await self.limit(self._limit.calls, self._limit.window_seconds)

    def _close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    async def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        process = self.process
        try:
            async with asyncio.timeout(ORDER_SECONDS_MAX):
                _, answer = await exchange(self.port, "POST", CONTROL, json.dumps(order).encode())
        except (OSError, TimeoutError) as error:
            msg = f"{self.url} did not take the order {str(order)[:200]}: {error!r}. Is it frozen?"
            raise UpstreamFailed(msg) from error
        if not answer:
            msg = f"{self.url} did not understand the order {str(order)[:200]}: {process.describe()}"
            raise UpstreamFailed(msg)
        taken: dict[str, Any] = json.loads(answer)
        return taken
