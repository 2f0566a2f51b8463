"""A process that only sleeps and looks at the clock, with one thread on each core.

When one wakes late, its core ran nothing of ours: on a virtual machine the host takes a core away
for a while, and whatever is on it stands still (10 % of the busy time on the machine of the
figures). No server could have answered sooner. The report shows the latest wake-ups beside the
slowest answers, on the same clock.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

EVERY_SECONDS = 0.005
KEPT = 200


@dataclass(slots=True)
class Bystander:
    """late: the latest wake-ups, as (monotonic seconds, milliseconds late); filled when it ends."""

    late: list[tuple[float, float]] = field(default_factory=list)


@asynccontextmanager
async def bystander() -> AsyncIterator[Bystander]:
    """Run the process while the block runs."""
    found = Bystander()
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, stdin=pipe, stdout=pipe)
    try:
        yield found
    finally:
        out, _ = await child.communicate(b"\n")
        found.late = [(at, ms) for at, ms in json.loads(out)]


def main() -> None:
    """Watch every core until a line arrives."""
    found = [_Watch(core) for core in sorted(os.sched_getaffinity(0))]
    for one in found:
        one.start()
    sys.stdin.readline()
    worst = heapq.nlargest(KEPT, [late for one in found for late in one.end()])
    print(json.dumps([(at, round(ms, 1)) for ms, at in worst]))


class _Watch(threading.Thread):
    """Sleeps and looks at the clock, on one core."""

    def __init__(self, core: int) -> None:
        super().__init__(daemon=True)
        self._core = core
        self._over = threading.Event()
        self._worst: list[tuple[float, float]] = []

    def run(self) -> None:
        os.sched_setaffinity(0, {self._core})  # of this thread alone
        while not self._over.is_set():
            due = time.monotonic() + EVERY_SECONDS
            time.sleep(EVERY_SECONDS)
            now = time.monotonic()
            heapq.heappush(self._worst, ((now - due) * 1000, now))
            if len(self._worst) > KEPT:
                heapq.heappop(self._worst)

    def end(self) -> list[tuple[float, float]]:
        """Stop; the latest wake-ups: (ms late, when)."""
        self._over.set()
        self.join()
        return self._worst


if __name__ == "__main__":
    main()
