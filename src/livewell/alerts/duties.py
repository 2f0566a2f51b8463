"""What alerts do by the clock, in whichever worker comes first.

livewell.alerts         every minute    every rule is evaluated, then channels are told
livewell.alerts.prune   every hour      alerts that ended long ago go
"""

from __future__ import annotations

from livewell.alerts.channel import read_channels
from livewell.alerts.deliver import deliver, prune
from livewell.alerts.rules import evaluate
from livewell.schedule.definition import OURS, Duty
from livewell.schedule.work import Work, WorkerContext

ALERTS = f"{OURS}alerts"
_ALERTS_SECONDS, _PRUNE_SECONDS = 60.0, 3600.0


def work(context: WorkerContext) -> Work:
    """For one worker; raises ConfigurationError when an alert channel's address is not there."""
    database = context.database
    channels = read_channels(database.settings)

    async def alert() -> int:
        judged = await evaluate(database)
        told = await deliver(database, channels)
        return judged.fired + told.sent

    async def forget() -> int:
        return await prune(database)

    return Work(duties=[Duty(ALERTS, _ALERTS_SECONDS, alert), Duty(f"{ALERTS}.prune", _PRUNE_SECONDS, forget)])
