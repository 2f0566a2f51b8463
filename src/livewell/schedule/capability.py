"""Schedules and singletons, as a capability."""

from pathlib import Path

from livewell.capability import Act, Capability, Chore, CommandEntry, View

CAPABILITY = Capability(
    name="schedule",
    migrations=Path(__file__).parent / "sql",
    api={"schedule_admin": "livewell.schedule.admin:ScheduleAdmin.of"},
    work="livewell.schedule.duties:work",
    housekeeping=(Chore("SELECT livewell.prune_runs(%s, %s)", lambda settings: (settings.run_days, 1000)),),
    gauges="livewell.schedule.gauges:GAUGES",
    checks="livewell.schedule.doctor:CHECKS",
    stuck="livewell.schedule.stuck:stuck",
    routes=("livewell.server.routes.schedules:health", "livewell.server.routes.schedules:router"),
    views=(
        View("/schedules", "What ran when?", "livewell.server.dashboard.pages.schedules:panels", "Schedules"),
        View("/schedules/{name}", "When did it run?", "livewell.server.dashboard.pages.schedules:one_schedule"),
        View("/runs", "What ran, and how did it end?", "livewell.server.dashboard.pages.schedules:all_runs"),
        View("/runs/{id}", "How did this run end?", "livewell.server.dashboard.pages.run:panels"),
    ),
    acts=(
        Act("/schedules/{name}/run", "livewell.server.dashboard.pages.schedules:run"),
        Act("/schedules/{name}/pause", "livewell.server.dashboard.pages.schedules:pause"),
        Act("/schedules/{name}/resume", "livewell.server.dashboard.pages.schedules:resume"),
    ),
    commands=(
        CommandEntry("schedules", "livewell.cli.commands.schedules:schedules", "Look and mend", 90),
        CommandEntry("runs", "livewell.cli.commands.runs:runs", "Look and mend", 100),
        CommandEntry("singletons", "livewell.cli.commands.singletons:singletons", "Look and mend", 110),
    ),
)
