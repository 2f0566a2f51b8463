"""`livewell` commands as processes of a demo's own.

They are started as anyone would start them, and they are gone when the demo is.

    started ──terminate──▶ stopping ──▶ ended          killed: SIGKILL, by number, which is what demos show
                              └──5 s──▶ killed

    kept: running ──ended by itself, or killed──▶ noticed within 0.1 s ──▶ started again ──▶ running

Each leads a session of its own, so Ctrl-C reaches the demo only. Each is also on a leash: if the
demo itself is killed, their standard input ends, and they stop.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, Self

from livewell.errors import LivewellError
from livewell.telemetry.redact import redact

__all__ = [
    "LEASE_SECONDS",
    "Keepable",
    "KeptProcess",
    "LivewellProcess",
    "Say",
    "ended",
    "kept",
    "log_folder",
    "short_lease",
]

Say = Callable[[str], None]

LEASE_SECONDS = 2
LOOK_SECONDS = 0.1
PAUSE_SECONDS = 0.5
PAUSE_SECONDS_MAX = 5.0
_STOP_SECONDS = 5.0
_TAIL_LINES = 5


def short_lease(address: str, *, grace_seconds: int) -> dict[str, str]:
    """Give a worker's settings with a short lease: nobody shall wait 45 seconds for a
    demonstration.
    """
    return {
        "LIVEWELL_DATABASE_URL": address,
        "LIVEWELL_LEASE_SECONDS": str(LEASE_SECONDS),
        "LIVEWELL_HEARTBEAT_SECONDS": "0.3",
        "LIVEWELL_MAINTAIN_SECONDS": "0.2",
        "LIVEWELL_POLL_SECONDS": "0.2",
        "LIVEWELL_GRACE_SECONDS": str(grace_seconds),
    }


@asynccontextmanager
async def log_folder(prefix: str) -> AsyncIterator[Path]:
    """Make a folder for the logs of a demo's processes; it is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class LivewellProcess:
    """One process that runs a `livewell` command."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @classmethod
    async def start_worker(cls, name: str, target: str, *, queue: str, log: Path, env: Mapping[str, str]) -> Self:
        """Start `livewell worker` for this queue alone: whatever else the database has is none of
        its business.
        """
        return await cls.start(name, ["worker", target, f"--queue={queue}", f"--name={name}"], log=log, env=env)

    @classmethod
    async def start(cls, name: str, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> Self:
        """Start a `livewell` command that knows --leash."""
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "livewell.cli", *command, "--leash"),
                env={**os.environ, **env},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it lives; minus the signal's number when a signal ended it."""
        return self._process.returncode

    def last_words(self) -> str:
        """Give the end of its log."""
        tail = self._log.read_text(errors="replace").strip().splitlines()[-_TAIL_LINES:]
        return redact(" | ".join(tail)) or "without a word"

    def require_alive(self) -> None:
        """Raise with its last words if it ended by itself."""
        if self.returncode is not None:
            raise LivewellError(f"worker {self.name} ended by itself with {self.returncode}: {self.last_words()}")

    async def kill(self) -> None:
        """Send kill -9, and wait until the kernel says that it is gone."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Ask politely; after a while, not."""
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()


class Keepable(Protocol):
    """Something that runs, and is started again when it dies."""

    async def start(self) -> None:
        """Start it; fine when it runs already."""

    async def keep(self) -> None:
        """Start it again whenever it is gone, until cancelled."""

    async def kill(self) -> None:
        """End it; fine when it has ended."""


class KeptProcess:
    """One process after another. spawn gets the number of the start."""

    def __init__(self, what: str, spawn: Callable[[int], Awaitable[LivewellProcess]], say: Say) -> None:
        self._what = what
        self._spawn = spawn
        self._say = say
        self._process: LivewellProcess | None = None
        self.starts = 0
        self.deaths: deque[float] = deque(maxlen=1_000)  # Unix seconds

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
        """Start the next one whenever one is gone, until cancelled."""
        pause = PAUSE_SECONDS
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._process is None or self._process.returncode is None:
                continue
            self.deaths.append(time.time())
            code = self._process.returncode
            words = "" if code < 0 else f": {self._process.last_words()}"
            self._say(f"the {self._what} (pid {self._process.pid}) is gone: {ended(code)}{words}")
            await self.start()
            self._say(f"another {self._what} is started, pid {self.pid}")
            await asyncio.sleep(pause)  # one that cannot start must not be started ten times a second
            pause = min(2 * pause, PAUSE_SECONDS_MAX) if self._process.returncode is not None else PAUSE_SECONDS


def ended(code: int) -> str:
    """Say how a process ended."""
    return f"signal {-code}" if code < 0 else f"ended with {code}"


@asynccontextmanager
async def kept(processes: Sequence[Keepable]) -> AsyncIterator[None]:
    """Start all of them and keep them running; none outlives the block."""
    keeping: list[asyncio.Task[None]] = []
    try:
        for process in processes:
            await process.start()
            keeping.append(asyncio.create_task(process.keep(), name=f"keeper of {type(process).__name__}"))
        yield
        for task in keeping:
            if task.done() and task.exception() is not None:
                raise LivewellError(f"the {task.get_name()} failed: {task.exception()}")
    finally:
        for task in keeping:
            task.cancel()
        if keeping:
            await asyncio.wait(keeping)
        for process in processes:
            await process.kill()
