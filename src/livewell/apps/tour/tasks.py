"""The tour's one task.

Its run is counted in a file, outside the database; its effect is committed together with its end.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

from livewell.app import Livewell
from livewell.queue.job import Job

QUEUE = "tour"
RUNS_FILE = "TOUR_RUNS_FILE"  # not LIVEWELL_…: those are settings

# A power of two, so no record lies across two pages: kill -9 can end a write only between pages,
# and thus leaves no half record.
_RECORD_BYTES = 16

app = Livewell()


@app.task(queue=QUEUE, name="tour.visit", timeout="30s")
async def visit(job: Job, number: int) -> None:
    """Say that it runs, take a moment, and leave one row."""
    note_run(Path(os.environ[RUNS_FILE]), number)
    await asyncio.sleep(random.uniform(0.002, 0.005))  # noqa: S311 - pretended work
    async with job.transaction() as tx:
        await tx.execute("INSERT INTO livewell_tour.effect (number, job_id) VALUES (%s, %s)", (number, job.id))


def note_run(file: Path, number: int) -> None:
    """Append one record with one O_APPEND write: whole, whoever else is writing."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        written = os.write(descriptor, f"{number:>{_RECORD_BYTES - 1}}\n".encode())
    finally:
        os.close(descriptor)
    if written != _RECORD_BYTES:
        raise OSError(f"{file}: only {written} of {_RECORD_BYTES} bytes written; is the disk full?")


def count_runs(file: Path) -> Counter[int]:
    """How often each job ran, whether or not it came to its end."""
    return Counter(map(int, file.read_text().split())) if file.exists() else Counter()
