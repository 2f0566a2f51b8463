"""The app of worker processes in the scheduler's tests and faults.

`livewell worker tests.integration.schedule.scheduled_app:app`.

LIVEWELL_TEST_LOG        where runs append `start|end SLOT PID AT`: the slot in microseconds since 1970, the monotonic clock in seconds
LIVEWELL_TEST_EVERY      the interval of `tick` (50 ms), which catches up with all its slots
LIVEWELL_TEST_HOLD       a file: while it exists, runs do not end
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from livewell import Livewell
from livewell.schedule.definition import Run
from livewell.testing.history import AppendLog

LOG, EVERY, HOLD = "LIVEWELL_TEST_LOG", "LIVEWELL_TEST_EVERY", "LIVEWELL_TEST_HOLD"

app = Livewell()
_log = AppendLog(Path(os.environ[LOG])) if LOG in os.environ else None


def note(event: str, run: Run) -> None:
    """One line, whole, whoever else writes."""
    assert _log is not None
    _log.append(f"{event} {round(run.due_at.timestamp() * 1_000_000)} {os.getpid()} {time.monotonic():.6f}")


@app.schedule(every=os.environ.get(EVERY, "50ms"), missed="all", timeout="60s")
async def tick(run: Run) -> int:
    """Takes no time, unless it is held."""
    note("start", run)
    while HOLD in os.environ and Path(os.environ[HOLD]).exists():  # noqa: ASYNC110, ASYNC240 - another process decides
        await asyncio.sleep(0.01)
    note("end", run)
    return 1
