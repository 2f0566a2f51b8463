"""Measured processes, seen from outside: start, let go, count, stop, hear the answer.

The other end is bench/stage.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.system import System

_SECONDS_MAX = 300.0
_ROOT = Path(__file__).parent.parent


class ChildFailed(RuntimeError):
    """A measured process ended without its answer."""


class Child:
    """One process of a system."""

    def __init__(self, system: System, verb: str, dsn: str, options: dict[str, Any]) -> None:
        self._title = f"{system.name} {verb}"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            [*system.command, verb, json.dumps(options)],
            env=os.environ | {"BENCH_DSN": dsn},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=system.folder or _ROOT,
        )
        self._changed = threading.Condition()
        self._ready = False
        self._answer: dict[str, Any] | None = None
        self.done = 0
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def wait_ready(self) -> None:
        """Come back when it has prepared everything."""
        self.wait(lambda: self._ready)

    def tell(self, word: str) -> None:
        """Go, or stop."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # whoever ended meanwhile has answered, or failed and is asked why
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Its last word."""
        self.wait(lambda: self._answer is not None)
        assert self._answer is not None
        return self._answer

    def wait(self, reached: Callable[[], bool]) -> None:
        """Wait for something it says."""
        with self._changed:
            self._changed.wait_for(lambda: reached() or self._ended, timeout=_SECONDS_MAX)
        if not reached():
            raise self._failure()

    def kill(self) -> None:
        """SIGKILL, in the middle of whatever it does."""
        self._process.kill()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def check(self) -> None:
        """Raise if it ended without an answer."""
        if self._ended and self._answer is None:
            raise self._failure()

    def _failure(self) -> ChildFailed:
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")[-2000:]
        how = "ended without an answer" if self._ended else f"did not answer within {_SECONDS_MAX:.0f} s"
        return ChildFailed(f"bench: {self._title}: it {how}:\n{said}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._hear(json.loads(line))
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _hear(self, message: dict[str, Any]) -> None:
        with self._changed:
            self._ready = self._ready or "ready" in message
            self.done = message.get("done", self.done)
            self._answer = message.get("answer", self._answer)
            self._changed.notify_all()


def ask(system: System, verb: str, dsn: str, **options: Any) -> dict[str, Any]:
    """One process that only does something and answers."""
    with Child(system, verb, dsn, options) as child:
        return child.answer()


class Crew:
    """Workers of one system that run at the same time."""

    def __init__(self, members: Sequence[Child]) -> None:
        self._members = members

    @property
    def done(self) -> int:
        """How many jobs they have done together, as far as they have told."""
        return sum(child.done for child in self._members)

    def go(self) -> None:
        """All at once, when all are ready."""
        for child in self._members:
            child.wait_ready()
        for child in self._members:
            child.tell("go")

    def until(self, jobs: int) -> None:
        """Wait until they have done so many."""
        give_up = time.monotonic() + _SECONDS_MAX
        while self.done < jobs:
            for child in self._members:
                child.check()
            if time.monotonic() > give_up:
                raise ChildFailed(f"bench: {self.done:,} of {jobs:,} jobs were done within {_SECONDS_MAX:.0f} s")
            time.sleep(0.01)

    def stop(self) -> list[dict[str, Any]]:
        """Stop all; their answers."""
        for child in self._members:
            child.tell("stop")
        return [child.answer() for child in self._members]


@contextlib.contextmanager
def crew(system: System, dsn: str, *, processes: int = 1, **options: Any) -> Iterator[Crew]:
    """Start so many workers; whatever happens, none is left behind."""
    with contextlib.ExitStack() as stack:
        yield Crew([stack.enter_context(Child(system, "work", dsn, options)) for _ in range(processes)])
