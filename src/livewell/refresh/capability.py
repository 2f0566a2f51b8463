"""Keeping data fresh, as a capability."""

from pathlib import Path

from livewell.capability import Capability, Chore, CommandEntry
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
    commands=(
        CommandEntry("types", "livewell.cli.commands.types:types", "Fresh data", 10),
        CommandEntry("get", "livewell.cli.commands.get:get", "Fresh data", 20),
        CommandEntry("watch", "livewell.cli.commands.watch:watch", "Fresh data", 30),
        CommandEntry("why", "livewell.cli.commands.why:why", "Look and mend", 10),
        CommandEntry("plan", "livewell.cli.commands.plan:plan", "Look and mend", 20),
        CommandEntry("upstreams", "livewell.cli.commands.upstreams:upstreams", "Look and mend", 50),
    ),
)
