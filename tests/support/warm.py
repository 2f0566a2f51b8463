"""The simulator and the fake upstream in processes that are forked from one which has imported them already.

A new interpreter takes most of a second to import them, and three hundred tests start one. They
cannot be frozen: whoever needs that starts a Simulator or a FakeUpstream.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import runpy
import sys
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path

from livewell.apps.market.simulator.simulator import Simulator
from livewell.testing import FakeUpstream
from livewell.testing.processes import ChildProcess

_START_SECONDS_MAX = 30.0
forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(
    [
        "livewell.apps.market.simulator.server",
        "livewell.testing.upstream.server",
        "tests.support.migrator",
        "uvloop",
        "orjson",
        __name__,
    ]
)


class _Fork:
    """`python -m module arguments`, without the interpreter's start.

    What it prints is in a file.
    """

    def __init__(self, module: str, arguments: list[str], told: Path) -> None:
        self.command = ["-m", module, *arguments]
        self._told = told
        self._process: BaseProcess = forks.Process(target=_run, args=(module, arguments, str(told)), daemon=True)

    async def first_line(self) -> str:
        """Start it and wait until it says where it listens."""
        self._told.unlink(missing_ok=True)
        self._process.start()
        async with asyncio.timeout(_START_SECONDS_MAX):
            while not (self._told.exists() and self._told.read_text().endswith("\n")):  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.003)
        return self._told.read_text().strip()

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        self._process.kill()
        self._process.join()

    @property
    def words(self) -> ChildProcess:
        """Never started: what is said of it when an order is not taken."""
        return ChildProcess(self.command)


class WarmSimulator(Simulator):
    """As Simulator, quicker to start."""

    _fork: _Fork | None = None

    @property
    def process(self) -> ChildProcess:
        """For words alone."""
        return super().process if self._fork is None else self._fork.words

    async def kill(self) -> None:
        """SIGKILL; fine when it is down already."""
        fork, self._fork = self._fork, None
        if fork is not None:
            await asyncio.to_thread(fork.kill)

    async def _start(self) -> None:
        arguments = [
            *("--log", str(self.log), "--port", str(self.port), "--seed", str(self._seed)),
            *("--symbols", str(self._symbols), "--knobs", json.dumps(self.knobs.as_json())),
        ]
        self._fork = _Fork("livewell.apps.market.simulator", arguments, self.log.with_suffix(".out"))
        self.port = int(json.loads(await self._fork.first_line())["port"])


class WarmUpstream(FakeUpstream):
    """As FakeUpstream, quicker to start."""

    _fork: _Fork | None = None

    @property
    def process(self) -> ChildProcess:
        """For words alone."""
        return super().process if self._fork is None else self._fork.words

    async def _start(self) -> None:
        arguments = [str(self._path), f"--port={self.port}", f"--seed={self._seed}"]
        self._fork = _Fork("livewell.testing.upstream", arguments, self._path.with_suffix(".out"))
        self.port = int((await self._fork.first_line()).rsplit(" ", 1)[1])
        if self._limit is not None:
            await self.limit(self._limit.calls, self._limit.window_seconds)

    def _close(self) -> None:
        fork, self._fork = self._fork, None
        if fork is not None:
            fork.kill()


def _run(module: str, arguments: list[str], told: str) -> None:
    """In the fork; it ends with the process of the tests."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = [module, *arguments]
    with Path(told).open("w") as sys.stdout:
        runpy.run_module(module, run_name="__main__")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
