"""Exports, as a capability."""

from pathlib import Path

from livewell.capability import Capability, Chore, CommandEntry, View

_PAGES = "livewell.server.dashboard.pages.exports"
_ROUTES = "livewell.server.routes"


CAPABILITY = Capability(
    name="exports",
    migrations=Path(__file__).parent / "sql",
    declare="livewell.exports.declare:declare",
    declares={"exporter": "livewell.exports.exporters:Exporters"},
    api={"exports": "livewell.exports.exports:Exports.of"},
    routes=(f"{_ROUTES}.exports:router", f"{_ROUTES}.export_files:router", f"{_ROUTES}.export_stream:router"),
    commands=(CommandEntry("exports", "livewell.cli.commands.exports:exports", "Look and mend", 116),),
    views=(View("/exports", "What is being made?", f"{_PAGES}:panels", "Exports"),),
    overview=f"{_PAGES}:overview",
    queues=("exports",),
    work="livewell.exports.worker_part:work",
    housekeeping=(
        Chore("SELECT livewell.prune_exports(%s, %s)", lambda settings: (settings.export_tombstone_days, 1000)),
    ),
    gauges="livewell.exports.gauges:GAUGES",
    checks="livewell.exports.doctor:CHECKS",
    stuck="livewell.exports.stuck:stuck",
)
