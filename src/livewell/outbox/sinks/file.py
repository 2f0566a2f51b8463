"""Appends events to a file, one JSON document a line: for local use, and to look at.

    batch ──one write──▶ in the file ──fsync──▶ all settled delivered
                └──error────┴──▶ all settled unknown, and the sink is away

One thread writes, one batch after the other, so lines of two batches are never mixed, and a
cancelled call cannot be overtaken by the next. A line that a crash cut in half is ended when the
file is opened again; a reader skips what is no JSON and drops repeats by id.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pydantic import Field
from typing_extensions import TypeVarTuple

from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, lanes
from livewell.outbox.sinks.cloud_events import document
from livewell.outbox.sinks.kind import SinkKind, SinkParts
from livewell.outbox.sinks.options import Bytes, Options
from livewell.outbox.sinks.oversize import oversize

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class FileOptions(Options):
    """Which file, and how large a payload may be."""

    path: str = Field(min_length=1, max_length=4_096)
    event_bytes_max: Bytes = 1_000_000


class FileSink:
    """One file that grows; rotating it is for others, and open() finds the new one."""

    dedupes = False

    def __init__(self, parts: SinkParts) -> None:
        self._path = Path(parts.options.path)
        self.event_bytes_max: int | None = parts.options.event_bytes_max
        self._file: int | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="livewell-file-sink")

    async def open(self) -> None:
        """Open the file, and end a line that was cut."""
        if self._file is not None:
            return
        try:
            self._file = await self._run(_open, self._path)
        except OSError as error:
            raise SinkAway(f"the file {self._path} cannot be opened: {error.strerror}") from error

    async def close(self) -> None:
        """Close the file; what was written is on the disk already."""
        number, self._file = self._file, None
        if number is not None:
            await self._run(os.close, number)
        self._thread.shutdown(wait=False)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="livewell-file-sink")

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Write what fits, all in one piece, and settle it when the disk has it."""
        await self.open()
        taken: list[Event] = []
        refused: list[tuple[Event, Outcome]] = []
        for lane in lanes(events):
            for event in lane:
                refusal = oversize(event.payload.encode(), self.event_bytes_max, "file")
                if refusal is not None:
                    refused.append((event, refusal))
                    break
                taken.append(event)
        taken.sort(key=lambda event: event.number)
        try:
            await self._run(_append, self._number(), b"".join(document(event) + b"\n" for event in taken))
        except OSError as error:
            for event in taken:
                settle(event, Outcome(Verdict.UNKNOWN, f"written in part, or not on the disk: {error.strerror}"))
            await self.close()
            raise SinkAway(f"the file {self._path} cannot be written: {error.strerror}") from error
        for event in taken:
            settle(event, DELIVERED)
        for event, refusal in refused:
            settle(event, refusal)

    def _number(self) -> int:
        if self._file is None:
            raise SinkAway(f"the file {self._path} was closed")
        return self._file

    async def _run(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


def _open(path: Path) -> int:
    number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    size = os.fstat(number).st_size
    if size and os.pread(number, 1, size - 1) != b"\n":
        os.write(number, b"\n")
    return number


def _append(number: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(number, rest) :]
    os.fsync(number)


KIND = SinkKind(options=FileOptions, make=FileSink, has_address=False)
