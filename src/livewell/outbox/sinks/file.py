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
from io import FileIO
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
        self._file: FileIO | None = None
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
        file, self._file = self._file, None
        if file is not None:
            await self._run(file.close)
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
            await self._run(_append, self._open_file(), b"".join(document(event) + b"\n" for event in taken))
        except ValueError as error:  # closed by a call that failed before this one was written
            raise SinkAway(f"the file {self._path} was closed") from error
        except OSError as error:
            for event in taken:
                settle(event, Outcome(Verdict.UNKNOWN, f"written in part, or not on the disk: {error.strerror}"))
            await self.close()
            raise SinkAway(f"the file {self._path} cannot be written: {error.strerror}") from error
        for event in taken:
            settle(event, DELIVERED)
        for event, refusal in refused:
            settle(event, refusal)

    def _open_file(self) -> FileIO:
        if self._file is None:
            raise SinkAway(f"the file {self._path} was closed")
        return self._file

    async def _run(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


def _open(path: Path) -> FileIO:
    file = FileIO(path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600))
    size = os.fstat(file.fileno()).st_size
    if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
        file.write(b"\n")
    return file


def _append(file: FileIO, data: bytes) -> None:
    """Raises ValueError if it is closed: a number would by then be another file."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


KIND = SinkKind(options=FileOptions, make=FileSink, has_address=False)
