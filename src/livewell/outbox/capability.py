"""The outbox, as a capability."""

from pathlib import Path

from livewell.capability import Capability, Chore, CommandEntry

CAPABILITY = Capability(
    name="outbox",
    migrations=Path(__file__).parent / "sql",
    declares={"outbox": "livewell.outbox.outbox:Outbox"},
    api={"emit": "livewell.outbox.emit:Emit", "inbox": "livewell.outbox.inbox:Inbox"},
    work="livewell.outbox.worker_part:work",
    routes=("livewell.server.routes.outbox:router",),
    commands=(CommandEntry("outbox", "livewell.cli.commands.outbox:outbox", "Look and mend", 75),),
    housekeeping=(
        Chore(
            "SELECT livewell.prune_outbox(%s, %s, %s)",
            lambda settings: (settings.dead_days, settings.stat_days, 1000),
        ),
        Chore("SELECT livewell.ensure_event_days(%s)", lambda settings: (settings.history_days_ahead,)),
        Chore(
            "SELECT livewell.drop_event_day(%s, %s)",
            lambda settings: (settings.event_days, settings.inbox_days),
            if_locked="a day of events is read, and was not dropped yet",
        ),
    ),
    gauges="livewell.outbox.gauges:GAUGES",
    checks="livewell.outbox.doctor:CHECKS",
    stuck="livewell.outbox.stuck:stuck",
)
