"""What the scheduler itself does by the clock: the housekeeping of all capabilities."""

from __future__ import annotations

from livewell.schedule.housekeeping import housekeeping
from livewell.schedule.work import Work, WorkerContext


def work(context: WorkerContext) -> Work:
    """In every worker."""
    return Work(duties=[housekeeping(context.database)])
