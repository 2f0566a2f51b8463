"""What a worker does for refreshes: the task, the due check, and the sweep of viewers who left.

A worker without refresh queues does none of it.
"""

from __future__ import annotations

from livewell.outbound import Outbound
from livewell.refresh.definition.credentials import Credentials
from livewell.refresh.due.check import DueCheck
from livewell.refresh.queues import PREFIX
from livewell.refresh.subscribe.sweep import sweeping
from livewell.refresh.task import KIND, RefreshTask
from livewell.schedule.work import Work, WorkerContext


def work(context: WorkerContext) -> Work:
    """For one worker."""
    database = context.database
    can_use = Credentials(database.settings).can_use
    if not context.works(PREFIX):
        return Work(can_use=can_use)
    refresh = RefreshTask(
        database,
        context.nudger,
        outbound=Outbound.from_settings(database.settings),
        transforms=context.transforms,
        walls=context.walls,
    )
    due_check = DueCheck(database, context.nudger, holder=context.holder)
    return Work(
        duties=[sweeping(database)],
        tasks={KIND: refresh.task},
        beside=[refresh.run, due_check.run],
        hear=[due_check.wake],
        can_use=can_use,
    )
