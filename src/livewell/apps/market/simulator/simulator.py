"""The side of demos and tests: start the simulator, turn its knobs, kill it, read its log.

started ──stop, kill──▶ down ──restart──▶ started (same port, same log, same market, same knobs)
"""

import asyncio
import json
from pathlib import Path
from typing import Any, Self

from livewell.apps.market.simulator.knobs import Knobs
from livewell.errors import LivewellError
from livewell.testing.http import exchange
from livewell.testing.processes import ChildProcess

__all__ = ["Simulator", "SimulatorFailed"]

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 10.0
ORDER_SECONDS_MAX = 10.0


class SimulatorFailed(LivewellError):
    """The simulator did not take an order: it is down, frozen, or the order made no sense to it."""


class Simulator:
    """FMP in a process of its own.

    `async with Simulator(log, seed=7) as fmp: get(fmp.url + "/quote?symbol=AAPL")`.
    """

    def __init__(
        self, log: Path, *, seed: int = 0, symbols: int = 1_000, port: int = 0, knobs: Knobs | None = None
    ) -> None:
        self.log = log
        self.port = port
        self.knobs = knobs or Knobs()
        self._seed = seed
        self._symbols = symbols
        self._child: ChildProcess | None = None

    @classmethod
    async def start(
        cls, log: Path, *, seed: int = 0, symbols: int = 1_000, port: int = 0, knobs: Knobs | None = None
    ) -> Self:
        """Start one; whoever does so without `async with` must stop() or kill() it."""
        simulator = cls(log, seed=seed, symbols=symbols, port=port, knobs=knobs)
        await simulator._start()
        return simulator

    async def __aenter__(self) -> Self:
        if self._child is None:
            await self._start()
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None and self._child is not None:
            error.add_note(self._child.describe())
        await self.kill()

    @property
    def url(self) -> str:
        """The base URL of the upstream, /stable included; the same after a restart."""
        return f"http://127.0.0.1:{self.port}/stable"

    @property
    def process(self) -> ChildProcess:
        """Its process, to freeze and thaw."""
        if self._child is None:
            msg = "the simulator is down: call restart(), or use it inside `async with Simulator(log)`"
            raise SimulatorFailed(msg)
        return self._child

    # ── orders: in force when they return ──

    async def turn(self, **knobs: Any) -> Knobs:
        """Turn some knobs; what is not named stays."""
        wanted = self.knobs.changed(knobs)
        await self._ask("POST", "/_control", {"knobs": {name: wanted.as_json()[name] for name in knobs}})
        self.knobs = wanted
        return wanted

    async def next(self, *faults: str) -> None:
        """Let the next answers have exactly these faults, one each, before any share is dealt."""
        await self._ask("POST", "/_control", {"next": list(faults)})

    async def counts(self) -> dict[str, Any]:
        """Give what was answered so far, since the log began: calls, answers, faults, families."""
        return await self._ask("GET", "/_counts")

    # ── life and death ──

    async def stop(self) -> None:
        """End it in an orderly way: open calls are logged as stopped."""
        self.process.terminate()
        await asyncio.to_thread(self.process.wait, STOP_SECONDS_MAX)
        await self.kill()

    async def kill(self) -> None:
        """SIGKILL; fine when it is down already."""
        child, self._child = self._child, None
        if child is not None:
            await asyncio.to_thread(child.close)

    async def restart(self) -> None:
        """Start it again on the same port with the knobs it had, killing it first if it runs."""
        await self.kill()
        await self._start()

    async def _start(self) -> None:
        arguments = [
            *("-m", "livewell.apps.market.simulator", "--log", str(self.log), "--port", str(self.port)),
            *("--seed", str(self._seed), "--symbols", str(self._symbols), "--knobs", json.dumps(self.knobs.as_json())),
        ]
        child = self._child = ChildProcess(arguments)
        try:
            line = await asyncio.to_thread(lambda: child.start().wait_for('"url"', START_SECONDS_MAX))
        except BaseException:
            await self.kill()
            raise
        self.port = int(json.loads(line)["port"])

    async def _ask(self, method: str, path: str, order: dict[str, Any] | None = None) -> dict[str, Any]:
        process = self.process
        body = b"" if order is None else json.dumps(order).encode()
        try:
            async with asyncio.timeout(ORDER_SECONDS_MAX):
                status, answer = await exchange(self.port, method, path, body)
        except (OSError, TimeoutError) as error:
            msg = f"{self.url} did not take the order {method} {path}: {error!r}. Is it frozen? {process.describe()}"
            raise SimulatorFailed(msg) from error
        if status != 200:
            msg = f"{self.url} refused the order {str(order)[:200]}: {answer.decode(errors='replace')[:1_000]}"
            raise SimulatorFailed(msg)
        figures: dict[str, Any] = json.loads(answer)
        return figures
