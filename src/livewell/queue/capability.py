"""The job queue, as a capability."""

from pathlib import Path

from livewell.capability import Act, Capability, Chore, CommandEntry, View

CAPABILITY = Capability(
    name="queue",
    migrations=Path(__file__).parent / "sql",
    api={"admin": "livewell.queue.admin:QueueAdmin.of"},
    housekeeping=(
        Chore("SELECT livewell.ensure_history_days(%s)", lambda settings: (settings.history_days_ahead,)),
        Chore(
            "SELECT livewell.prune_queue(%s, %s, %s)", lambda settings: (settings.dead_days, settings.stat_days, 1000)
        ),
        Chore("SELECT livewell.prune_bulk_acts(%s, %s)", lambda settings: (settings.audit_days, 1000)),
        Chore(
            "SELECT livewell.drop_history_day(%s)",
            lambda settings: (settings.history_days,),
            if_locked="a day of history is read, and was not dropped yet",
        ),
    ),
    work="livewell.operations.bulk_acts:work",
    gauges="livewell.queue.gauges:GAUGES",
    checks="livewell.queue.doctor:CHECKS",
    stuck="livewell.queue.stuck:stuck",
    routes=(
        "livewell.server.routes.jobs:router",
        "livewell.server.routes.job_stream:router",
        "livewell.server.routes.dead:router",
        "livewell.server.routes.bulk_acts:router",
    ),
    views=(
        View("/work", "What is running, what is stuck?", "livewell.server.dashboard.pages.queues:panels", "Work"),
        View("/work/jobs", "Which jobs are there?", "livewell.server.dashboard.pages.jobs:panels"),
        View("/work/look", "Which job?", "livewell.server.dashboard.pages.jobs:look", live=False),
        View(
            "/work/pause",
            "Are these the queues that you mean?",
            "livewell.server.dashboard.pages.pause_queues:panels",
            scope="operate",
            live=False,
        ),
        View("/work/jobs/{id}", "What became of this job?", "livewell.server.dashboard.pages.job:panels"),
        View("/work/batches", "Which batches are there?", "livewell.server.dashboard.pages.batches:panels"),
        View("/work/batches/{id}", "How far is this batch?", "livewell.server.dashboard.pages.batch:panels"),
        View("/work/workers/{id}", "What does this worker do?", "livewell.server.dashboard.pages.worker:panels"),
        View("/dead", "What failed for good?", "livewell.server.dashboard.pages.dead:panels", "Dead letters"),
        View("/dead/{id}", "Why did this fail for good?", "livewell.server.dashboard.pages.dead:one"),
        View("/acts", "What is being done to many?", "livewell.server.dashboard.pages.bulk_acts:panels", "Acts"),
        View(
            "/acts/new",
            "Is this what you mean?",
            "livewell.server.dashboard.pages.bulk_acts:new",
            scope="operate",
            live=False,
        ),
        View("/acts/{id}", "How far is it?", "livewell.server.dashboard.pages.bulk_acts:one"),
    ),
    acts=(
        Act("/queues/{name}/pause", "livewell.server.dashboard.pages.queues:pause", page="/work"),
        Act("/queues/{name}/resume", "livewell.server.dashboard.pages.queues:resume", page="/work"),
        Act("/work/pause", "livewell.server.dashboard.pages.pause_queues:pause"),
        Act("/jobs/{id}/cancel", "livewell.server.dashboard.pages.job:cancel", page="/work/jobs/{id}"),
        Act("/jobs/{id}/retry", "livewell.server.dashboard.pages.job:retry", page="/work/jobs/{id}"),
        Act("/jobs/{id}/reveal", "livewell.server.dashboard.pages.job:reveal", page="/work/jobs/{id}"),
        Act("/dead/{id}/redrive", "livewell.server.dashboard.pages.dead:redrive"),
        Act("/dead/{id}/discard", "livewell.server.dashboard.pages.dead:discard"),
        Act("/dead/{id}/reveal", "livewell.server.dashboard.pages.dead:reveal"),
        Act("/dead/{id}/edit", "livewell.server.dashboard.pages.dead:edit"),
        Act("/acts", "livewell.server.dashboard.pages.bulk_acts:begin"),
        Act("/acts/{id}/cancel", "livewell.server.dashboard.pages.bulk_acts:cancel"),
    ),
    commands=(
        CommandEntry("worker", "livewell.cli.commands.worker:worker", "Run", 20),
        CommandEntry("queues", "livewell.cli.commands.queues:queues", "Look and mend", 60),
        CommandEntry("jobs", "livewell.cli.commands.jobs:jobs", "Look and mend", 70),
        CommandEntry("dead", "livewell.cli.commands.dead:dead", "Look and mend", 80),
    ),
)
