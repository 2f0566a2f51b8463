"""A process that only sleeps and looks at the clock.

When it wakes late, the machine had no processor time for it, and no server could have answered
sooner. The report shows its latest wake-ups beside the slowest answers, on the same clock.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import select
import sys
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
    """Sleep and look at the clock until a line arrives."""
    worst: list[tuple[float, float]] = []
    while not select.select([sys.stdin], [], [], 0)[0]:
        due = time.monotonic() + EVERY_SECONDS
        time.sleep(EVERY_SECONDS)
        now = time.monotonic()
        heapq.heappush(worst, ((now - due) * 1000, now))
        if len(worst) > KEPT:
            heapq.heappop(worst)
    print(json.dumps([(at, round(ms, 1)) for ms, at in sorted(worst, reverse=True)]))


if __name__ == "__main__":
    main()
