"""What really happened, written down outside the product.

The oracle of a fault test is never our own tables. A job handler, a fake upstream or a reader
appends one line per event to a file; the test reads the file after the storm and compares it with
the database.

On disk a line is RS, text, LF (the framing of RFC 7464). One O_APPEND write keeps writers apart,
but SIGKILL can stop a write between two pages of the file: without RS the torn start would be glued
to the next writer's line and spoil both.
"""

import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["AppendLog", "percentile"]

LINE_BYTES_MAX = 65_536
START = "\x1e"


@dataclass(frozen=True, slots=True)
class AppendLog:
    """A file that any number of processes append lines to.

    A line whose writer was killed while writing it counts as never written.
    """

    path: Path

    def append(self, line: str) -> None:
        """Write one line with one O_APPEND write.

        It is whole and in one place, also when other processes write.
        """
        data = f"{START}{line}\n".encode()
        if "\n" in line or START in line or len(data) > LINE_BYTES_MAX:
            msg = (
                f"an append log takes one line of at most {LINE_BYTES_MAX} bytes, not these {len(data)}: {line[:80]!r}"
            )
            raise ValueError(msg)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = os.write(descriptor, data)
        finally:
            os.close(descriptor)
        if written != len(data):
            msg = f"{self.path}: only {written} of {len(data)} bytes written (disk full?): this history cannot judge"
            raise OSError(msg)

    def read(self) -> list[str]:
        """Every whole line so far, oldest first; none when nobody has written yet."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        # What stands before the last RS of a line is the torn start of another; it may end inside a
        # character.
        return [line.rpartition(START.encode())[2].decode() for line in data.split(b"\n")[:-1]]

    def counts(self) -> Counter[str]:
        """How often each line was written: runs per job, when handlers append their job's id."""
        return Counter(self.read())


def percentile(values: Iterable[float], p: float) -> float:
    """Give the smallest value that p percent of the values do not exceed (nearest rank: always one
    we measured).
    """
    ranked = sorted(values)
    if not ranked or not 0 <= p <= 100:
        msg = f"percentile({p}) of {len(ranked)} values: there must be a value, and p must be between 0 and 100"
        raise ValueError(msg)
    return ranked[max(0, math.ceil(len(ranked) * p / 100) - 1)]
