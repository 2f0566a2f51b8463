"""What Livewell does itself by the clock, in whichever worker comes first; each shows in `livewell schedules list` and in the history like any schedule.

livewell.housekeeping   every hour      days of history made and dropped, everything past its time
livewell.sweep          every minute    viewers who left without a word
livewell.alerts         every minute    every rule evaluated, then whoever is to be told is told
livewell.alerts.prune   every hour      alerts that ended long ago
"""

from __future__ import annotations

from livewell.alerts.channel import Channel, read_channels
from livewell.db import Database
from livewell.operations.rules import evaluate
from livewell.refresh.subscribe.sweep import sweeping
from livewell.schedule.definition import OURS, Duty
from livewell.schedule.housekeeping import housekeeping

ALERTS = f"{OURS}alerts"
_ALERTS_SECONDS, _PRUNE_SECONDS = 60.0, 3600.0


def duties(database: Database, *, refreshes: bool) -> list[Duty]:
    """Those of one worker; raises ConfigurationError when an alert channel's address is not there."""
    alerting = _alerting(database, read_channels(database.settings))
    return [housekeeping(database), *alerting, *([sweeping(database)] if refreshes else [])]


def _alerting(database: Database, channels: tuple[Channel, ...]) -> list[Duty]:
    from livewell.alerts.deliver import deliver, prune  # noqa: PLC0415 - it needs aiohttp, a tenth of the start-up, and only workers do

    async def alert() -> int:
        judged = await evaluate(database)
        told = await deliver(database, channels)
        return judged.fired + told.sent

    async def forget() -> int:
        return await prune(database)

    return [Duty(ALERTS, _ALERTS_SECONDS, alert), Duty(f"{ALERTS}.prune", _PRUNE_SECONDS, forget)]
