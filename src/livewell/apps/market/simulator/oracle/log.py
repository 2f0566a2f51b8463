"""The simulator's own history: one JSON line per call, written before a byte of its answer leaves.

    {"event":"started", "seed", "symbols", "knobs", …}           enough to make the market again
    {"event":"call", "n", "at_ns", "wall", "path", "keys", "query",
     "credential", "answer", "status", "digest", "source_at", "bytes", …}
    {"event":"ended", "n", "at_ns", "how", "bytes"}              only for answers that were not handed over at once
    {"event":"knobs", …}

One write call per line, straight to the kernel: kill -9 loses at most the line being written. A
torn line can only be the last of its process; the next one begins with a line end, so the torn one
stands alone and is left out by the reader.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from livewell.errors import LivewellError
from livewell.testing.upstream import Call

__all__ = ["LogBroken", "LogWriter", "call_of", "read_events"]


class LogBroken(LivewellError):
    """A line in the middle of the log makes no sense: this log cannot judge anybody."""


class LogWriter:
    """Appends; nothing is kept in memory."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")

    def write(self, event: dict[str, Any]) -> None:
        """Write one line; it is in the kernel's hands when this returns."""
        line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
        if os.write(self._file, line) != len(line):
            msg = f"only a part of a line was written (disk full?): {line[:80]!r}"
            raise LogBroken(msg)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Give every whole event, oldest first, in bounded memory; a torn line may only stand before a
    start or at the end.
    """
    torn = b""
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            try:
                event: dict[str, Any] = orjson.loads(line)
            except orjson.JSONDecodeError:
                torn = torn or line
                continue
            if torn and event.get("event") != "started":
                msg = f"{path}: a line that is no JSON, and no start after it: {torn[:80]!r}"
                raise LogBroken(msg)
            torn = b""
            yield event


def call_of(event: dict[str, Any]) -> Call:
    """Give a call as livewell.testing's counters want it (busiest_window, overlaps, use)."""
    whole = event.get("ended_ns") is not None
    return Call(
        number=event["n"],
        at_ns=event["at_ns"],
        method="GET",
        path=event["path"],
        keys=tuple(event["keys"]),
        credential=event["credential"],
        call_id=event.get("call_id", ""),
        status=event["status"],
        behaviour=event["answer"],
        ended_ns=event.get("ended_ns"),
        ending="answered" if whole else None,
        wire_bytes=event["bytes"],
    )
