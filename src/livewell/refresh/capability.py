"""Keeping data fresh, as a capability."""

from pathlib import Path

from livewell.capability import Act, Capability, Chore, CommandEntry, View
from livewell.refresh.nudges import DUE
from livewell.refresh.queues import ALL_QUEUES

CAPABILITY = Capability(
    name="refresh",
    migrations=Path(__file__).parent / "sql",
    api={"reads": "livewell.refresh.read.reads:Reads.of"},
    queues=(ALL_QUEUES,),
    work="livewell.refresh.worker_part:work",
    housekeeping=(Chore("SELECT livewell.prune_refresh(%s, %s)", lambda settings: (settings.stat_days, 1000)),),
    singletons=(DUE,),
    gauges="livewell.refresh.gauges:GAUGES",
    checks="livewell.refresh.doctor:CHECKS",
    stuck="livewell.refresh.stuck:stuck",
    routes=(
        "livewell.server.routes.subscriptions:router",
        "livewell.server.routes.session_stream:router",
        "livewell.server.routes.data:router",
        "livewell.server.routes.types:router",
        "livewell.server.routes.plan:router",
    ),
    views=(
        View("/types", "What is stale, and why?", "livewell.server.dashboard.pages.types:types", "Types"),
        View("/types/{name}", "How fresh is this type?", "livewell.server.dashboard.pages.types:one_type"),
        View("/types/{name}/look", "Which key?", "livewell.server.dashboard.pages.types:look"),
        View(
            "/types/{name}/{key:path}", "Why is this value as it is?", "livewell.server.dashboard.pages.types:one_key"
        ),
        View("/limits", "Will the limits hold?", "livewell.server.dashboard.pages.limits:panels", "Limits"),
    ),
    acts=(
        Act("/types/{name}/pause", "livewell.server.dashboard.pages.types:pause"),
        Act("/types/{name}/resume", "livewell.server.dashboard.pages.types:resume"),
        Act("/types/{name}/{key:path}/refresh", "livewell.server.dashboard.pages.types:refresh"),
        Act("/types/{name}/{key:path}/ttl", "livewell.server.dashboard.pages.types:set_ttl"),
        Act("/upstreams/{name}/pause", "livewell.server.dashboard.pages.limits:pause"),
        Act("/upstreams/{name}/resume", "livewell.server.dashboard.pages.limits:resume"),
        Act("/upstreams/{name}/close", "livewell.server.dashboard.pages.limits:close"),
        Act("/upstreams/{name}/probe", "livewell.server.dashboard.pages.limits:probe"),
    ),
    commands=(
        CommandEntry("types", "livewell.cli.commands.types:types", "Fresh data", 10),
        CommandEntry("get", "livewell.cli.commands.get:get", "Fresh data", 20),
        CommandEntry("watch", "livewell.cli.commands.watch:watch", "Fresh data", 30),
        CommandEntry("why", "livewell.cli.commands.why:why", "Look and mend", 10),
        CommandEntry("plan", "livewell.cli.commands.plan:plan", "Look and mend", 20),
        CommandEntry("upstreams", "livewell.cli.commands.upstreams:upstreams", "Look and mend", 50),
    ),
)
