"""What the outbox does in a worker: it relays, whatever queues the worker has."""

from __future__ import annotations

from livewell.outbox.duties import duties
from livewell.outbox.relay.relays import Relays
from livewell.schedule.work import Work, WorkerContext


def work(context: WorkerContext) -> Work:
    """For one worker."""
    sinks = context.declared["outbox"].definitions(context.database.settings)
    relays = Relays(context.database, sinks, context.holder)
    clock = duties(context.database, context.nudger, has_sinks=bool(sinks))
    return Work(duties=clock, beside=[relays.run], hear=[relays.hear])
