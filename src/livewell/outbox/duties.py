"""What the outbox does by the clock, in whichever worker comes first.

livewell.outbox.replay    every second       the next page of each replay that runs
livewell.outbox.outside   every 5 seconds    claimers outside whose lease has run out are ended

Where nothing is declared to send events to, both go once a minute: a sink may still be declared on
the command line, for claimers outside.
"""

from __future__ import annotations

from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.outbox.nudges import EVENTS
from livewell.schedule.definition import OURS, Duty

REPLAY = f"{OURS}outbox.replay"
OUTSIDE = f"{OURS}outbox.outside"
_REPLAY_SECONDS, _OUTSIDE_SECONDS, _IDLE_SECONDS = 1.0, 5.0, 60.0
_LOOKS = 20_000  # events that one page of a replay looks at, at most

_RUNNING = "SELECT y.id FROM livewell.event_replay y WHERE y.state = 'running' ORDER BY y.id LIMIT 20"
_FEED = "SELECT livewell.feed_replay(%s, %s)"
_BURY = "SELECT livewell.bury_outside()"


def duties(database: Database, nudger: Nudger, *, has_sinks: bool) -> list[Duty]:
    """For one worker."""

    async def replay() -> int:
        fed = await feed(database)
        if fed:
            nudger.nudge(EVENTS)
        return fed

    async def bury() -> int:
        buried = int((await database.call(_BURY))[0][0])
        if buried:
            nudger.nudge(EVENTS)
        return buried

    return [
        Duty(REPLAY, _REPLAY_SECONDS if has_sinks else _IDLE_SECONDS, replay),
        Duty(OUTSIDE, _OUTSIDE_SECONDS if has_sinks else _IDLE_SECONDS, bury),
    ]


async def feed(database: Database) -> int:
    """One page of each replay that runs; answers how many events were fed."""
    running = [row[0] for row in await database.call(_RUNNING)]
    pages = [(await database.call(_FEED, (number, _LOOKS)))[0][0] for number in running]
    return sum(page or 0 for page in pages)
