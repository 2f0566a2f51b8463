"""The worker, the server and the simulator: real processes, started again when they die, and gone when the demo is.

    running ──ended by itself, or killed──▶ noticed within 0.1 s ──▶ started again ──▶ running
       └──the demo ends──▶ killed

All are on a leash: should the demo itself be killed, they end too.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from livewell.apps.market.simulator import Simulator, SimulatorFailed
from livewell.apps.tour.processes import WorkerProcess
from livewell.errors import LivewellError
from livewell.testing.processes import ChildFailed

Say = Callable[[str], None]

_LOOK_SECONDS = 0.1
_PAUSE_SECONDS = 0.5
_PAUSE_SECONDS_MAX = 5.0
_TARGET = "livewell.apps.plain:app"
_QUEUE = "refresh.*"
LEASE_SECONDS = 2


def worker_environment(address: str, *, slots: int, credentials: Mapping[str, str], host: str) -> dict[str, str]:
    """A short lease, so that nobody waits 45 seconds for a demonstration; and all that must shrink with it."""
    return {
        "LIVEWELL_DATABASE_URL": address,
        "LIVEWELL_LISTEN_URL": address,
        "LIVEWELL_LEASE_SECONDS": str(LEASE_SECONDS),
        "LIVEWELL_HEARTBEAT_SECONDS": "0.3",
        "LIVEWELL_MAINTAIN_SECONDS": "0.2",
        "LIVEWELL_POLL_SECONDS": "0.2",
        "LIVEWELL_GRACE_SECONDS": "1",
        "LIVEWELL_WORKER_SLOTS": str(slots),
        "LIVEWELL_LOG_LEVEL": "error",  # an endless demo must not fill the disk
        "LIVEWELL_OUTBOUND_PRIVATE_HOSTS": host,
        **credentials,
    }


class KeptProcess:
    """One process after another. spawn gets the number of the start."""

    def __init__(self, what: str, spawn: Callable[[int], Awaitable[WorkerProcess]], say: Say) -> None:
        self._what = what
        self._spawn = spawn
        self._say = say
        self._process: WorkerProcess | None = None
        self.starts = 0
        self.deaths: deque[float] = deque(maxlen=1_000)  # Unix seconds, for the judge

    @property
    def pid(self) -> int | None:
        """Of the one that runs."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Start the next one."""
        self.starts += 1
        self._process = await self._spawn(self.starts)

    async def kill(self) -> None:
        """End it; fine when it has ended."""
        if self._process is not None:
            await self._process.kill()

    async def keep(self) -> None:
        """Until cancelled."""
        pause = _PAUSE_SECONDS
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._process is None or self._process.returncode is None:
                continue
            self.deaths.append(time.time())
            code = self._process.returncode
            words = "" if code < 0 else f": {self._process.last_words()}"
            self._say(f"the {self._what} (pid {self._process.pid}) is gone: {_ended(code)}{words}")
            await self.start()
            self._say(f"another {self._what} is started, pid {self.pid}")
            await asyncio.sleep(pause)  # one that cannot start must not be started ten times a second
            pause = min(2 * pause, _PAUSE_SECONDS_MAX) if self._process.returncode is not None else _PAUSE_SECONDS


def kept_worker(folder: Path, env: Mapping[str, str], say: Say) -> KeptProcess:
    """`livewell worker`."""

    async def spawn(number: int) -> WorkerProcess:
        return await WorkerProcess.start(f"demo-{number}", _TARGET, queue=_QUEUE, log=folder / "worker.log", env=env)

    return KeptProcess("worker", spawn, say)


async def keep_simulator(simulator: Simulator, say: Say) -> None:
    """Until cancelled: start it again on the same port, with the same log, market and knobs."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        process = simulator.process
        if process.returncode is None:
            continue
        say(f"the simulator (pid {process.pid}) is gone: {_ended(process.returncode)}")
        while True:
            try:
                await simulator.restart()
            except (SimulatorFailed, ChildFailed) as error:
                say(f"the simulator does not start: {str(error).splitlines()[0]}")
                await asyncio.sleep(_PAUSE_SECONDS_MAX)
            else:
                break
        say(f"another simulator is started, pid {simulator.process.pid}")


def _ended(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"ended with {code}"


@asynccontextmanager
async def kept(simulator: Simulator, processes: Sequence[KeptProcess], say: Say) -> AsyncIterator[None]:
    """All running, and none outlives the block."""
    keeping: list[asyncio.Task[None]] = []
    try:
        for process in processes:
            await process.start()
            keeping.append(asyncio.create_task(process.keep(), name="process-keeper"))
        keeping.append(asyncio.create_task(keep_simulator(simulator, say), name="simulator-keeper"))
        yield
        for task in keeping:
            if task.done() and task.exception() is not None:
                raise LivewellError(f"{task.get_name()} failed: {task.exception()}")
    finally:
        for task in keeping:
            task.cancel()
        if keeping:
            await asyncio.wait(keeping)
        for process in processes:
            await process.kill()
        await simulator.kill()
