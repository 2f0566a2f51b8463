"""What the outbox does in a worker: it relays, whatever queues the worker has."""

from __future__ import annotations

from livewell.outbox.duties import duties
from livewell.outbox.relay.relays import Relays
from livewell.schedule.work import Work, WorkerContext


def work(context: WorkerContext) -> Work:
    """For one worker."""
    relays = Relays(context.database, context.declared["outbox"].definitions(context.database.settings), context.holder)
    return Work(duties=duties(context.database, context.nudger), beside=[relays.run], hear=[relays.hear])
