"""Keeping data fresh, as a capability."""

from pathlib import Path

from livewell.capability import Act, Capability, Chore, CommandEntry, View
from livewell.refresh.nudges import DUE
from livewell.refresh.queues import ALL_QUEUES

_PAGES = "livewell.server.dashboard.pages"

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
        View("/types", "What is stale, and why?", f"{_PAGES}.types:panels", "Types"),
        View("/types/{name}", "How fresh is this type?", f"{_PAGES}.type:panels"),
        View("/types/{name}/{key:path}", "Why is this value as it is?", f"{_PAGES}.key:panels"),
        View("/limits", "Will the limits hold?", f"{_PAGES}.limits:panels", "Limits"),
        View("/upstreams/{name}/close", "Close this breaker?", f"{_PAGES}.limits:confirm_close", live=False),
    ),
    acts=(
        Act("/types/{name}/pause", f"{_PAGES}.type:pause"),
        Act("/types/{name}/resume", f"{_PAGES}.type:resume"),
        Act("/types/{name}/{key:path}/refresh", f"{_PAGES}.key:refresh"),
        Act("/types/{name}/{key:path}/ttl", f"{_PAGES}.key:set_ttl"),
        Act("/types/{name}/{key:path}/ttl/clear", f"{_PAGES}.key:clear_ttl"),
        Act("/upstreams/{name}/pause", f"{_PAGES}.limits:pause", page="/limits"),
        Act("/upstreams/{name}/resume", f"{_PAGES}.limits:resume", page="/limits"),
        Act("/upstreams/{name}/close", f"{_PAGES}.limits:close", page="/limits"),
        Act("/upstreams/{name}/probe", f"{_PAGES}.limits:probe", page="/limits"),
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
