"""The demo's worker and its simulator, each started again when it dies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from livewell.apps.kit.processes import (
    LOOK_SECONDS,
    PAUSE_SECONDS_MAX,
    KeptProcess,
    LivewellProcess,
    Say,
    ended,
    short_lease,
)
from livewell.apps.market.simulator import Simulator, SimulatorFailed
from livewell.refresh.queues import ALL_QUEUES
from livewell.testing.processes import ChildFailed

_TARGET = "livewell.apps.plain:app"


def worker_environment(address: str, *, slots: int, credentials: Mapping[str, str], host: str) -> dict[str, str]:
    """Give the worker's settings: a short lease, the simulated accounts, and leave to call the
    simulator's host.
    """
    return {
        **short_lease(address, grace_seconds=1),
        "LIVEWELL_LISTEN_URL": address,
        "LIVEWELL_WORKER_SLOTS": str(slots),
        "LIVEWELL_LOG_LEVEL": "error",  # an endless demo must not fill the disk
        "LIVEWELL_OUTBOUND_PRIVATE_HOSTS": host,
        **credentials,
    }


def kept_worker(folder: Path, env: Mapping[str, str], say: Say) -> KeptProcess:
    """`livewell worker`."""

    async def spawn(number: int) -> LivewellProcess:
        log = folder / "worker.log"
        return await LivewellProcess.start_worker(f"demo-{number}", _TARGET, queue=ALL_QUEUES, log=log, env=env)

    return KeptProcess("worker", spawn, say)


class KeptSimulator:
    """The simulator, again and again on the same port, with the same log, market and knobs."""

    def __init__(self, simulator: Simulator, say: Say) -> None:
        self._simulator = simulator
        self._say = say

    @property
    def pid(self) -> int | None:
        """Of the one that runs."""
        try:
            return self._simulator.process.pid
        except SimulatorFailed:
            return None

    async def start(self) -> None:
        """Start it, unless it runs."""
        if self.pid is None:
            await self._simulator.restart()

    async def kill(self) -> None:
        """End it; fine when it has ended."""
        await self._simulator.kill()

    async def keep(self) -> None:
        """Start it again whenever it is gone, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            process = self._simulator.process
            if process.returncode is None:
                continue
            self._say(f"the simulator (pid {process.pid}) is gone: {ended(process.returncode)}")
            await self._restart()
            self._say(f"another simulator is started, pid {self.pid}")

    async def _restart(self) -> None:
        while True:
            try:
                await self._simulator.restart()
            except (SimulatorFailed, ChildFailed) as error:
                self._say(f"the simulator does not start: {str(error).splitlines()[0]}")
                await asyncio.sleep(PAUSE_SECONDS_MAX)
            else:
                return
