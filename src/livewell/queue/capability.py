"""The job queue, as a capability."""

from pathlib import Path

from livewell.capability import Capability, Chore, CommandEntry

CAPABILITY = Capability(
    name="queue",
    migrations=Path(__file__).parent / "sql",
    api={"admin": "livewell.queue.admin:QueueAdmin.of"},
    housekeeping=(
        Chore("SELECT livewell.ensure_history_days(%s)", lambda settings: (settings.history_days_ahead,)),
        Chore(
            "SELECT livewell.prune_queue(%s, %s, %s)", lambda settings: (settings.dead_days, settings.stat_days, 1000)
        ),
        Chore(
            "SELECT livewell.drop_history_day(%s)",
            lambda settings: (settings.history_days,),
            if_locked="a day of history is read, and was not dropped yet",
        ),
    ),
    gauges="livewell.queue.gauges:GAUGES",
    checks="livewell.queue.doctor:CHECKS",
    stuck="livewell.queue.stuck:stuck",
    routes=("livewell.server.routes.jobs:router", "livewell.server.routes.job_stream:router"),
    commands=(
        CommandEntry("worker", "livewell.cli.commands.worker:worker", "Run", 20),
        CommandEntry("queues", "livewell.cli.commands.queues:queues", "Look and mend", 60),
        CommandEntry("jobs", "livewell.cli.commands.jobs:jobs", "Look and mend", 70),
        CommandEntry("dead", "livewell.cli.commands.dead:dead", "Look and mend", 80),
    ),
)
