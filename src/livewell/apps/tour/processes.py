"""The tour's workers: real processes, started as anyone would start them, and gone when the tour is.

    started ──terminate──▶ stopping ──▶ ended          killed: SIGKILL, by number, which is what the tour shows
                              └──5 s──▶ killed

They stand in sessions of their own, so Ctrl-C is for the tour; and on a leash: should the tour itself be killed, their standard input ends, and they stop.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from livewell.errors import LivewellError
from livewell.telemetry.redact import redact

_STOP_SECONDS = 5.0
_TAIL_LINES = 5


class WorkerProcess:
    """One worker of the tour."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, name: str, target: str, *, queue: str, log: Path, env: Mapping[str, str]) -> Self:
        """`livewell worker`, with these settings, for this queue alone: whatever else the database has is none of its business."""
        return await cls.run(name, ["worker", target, f"--queue={queue}", f"--name={name}"], log=log, env=env)

    @classmethod
    async def run(cls, name: str, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> Self:
        """A `livewell` command that knows --leash."""
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
        """The end of its log."""
        tail = self._log.read_text(errors="replace").strip().splitlines()[-_TAIL_LINES:]
        return redact(" | ".join(tail)) or "without a word"

    def require_alive(self) -> None:
        """Raise with its last words if it ended by itself."""
        if self.returncode is not None:
            raise LivewellError(f"worker {self.name} ended by itself with {self.returncode}: {self.last_words()}")

    async def kill(self) -> None:
        """kill -9, and wait until the kernel says that it is gone."""
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


@asynccontextmanager
async def two_workers(
    target: str, *, queue: str, folder: Path, env: Mapping[str, str]
) -> AsyncIterator[list[WorkerProcess]]:
    """Two workers, neither of which outlives the block."""
    workers: list[WorkerProcess] = []
    try:
        for letter in "ab":
            name = f"tour-{letter}"
            workers.append(await WorkerProcess.start(name, target, queue=queue, log=folder / f"{name}.log", env=env))
        yield workers
        await asyncio.gather(*(worker.stop() for worker in workers))
    finally:
        await asyncio.gather(*(worker.kill() for worker in workers))  # Ctrl-C does not wait for manners
