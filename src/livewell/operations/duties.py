"""What operations do by the clock, in whichever worker comes first.

livewell.minutes    every minute    a few figures of the system state are kept, for the dashboard
"""

from __future__ import annotations

from livewell.schedule.definition import OURS, Duty
from livewell.schedule.work import Work, WorkerContext

MINUTES = f"{OURS}minutes"
_MINUTE_SECONDS = 60.0


def work(context: WorkerContext) -> Work:
    """For one worker."""
    database = context.database

    async def record() -> int:
        [(kept,)] = await database.call("SELECT livewell.record_minute()")
        return int(kept)

    return Work(duties=[Duty(MINUTES, _MINUTE_SECONDS, record)])
