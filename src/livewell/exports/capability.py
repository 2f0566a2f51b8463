"""Exports, as a capability."""

from pathlib import Path

from livewell.capability import Capability, Chore

CAPABILITY = Capability(
    name="exports",
    migrations=Path(__file__).parent / "sql",
    declare="livewell.exports.declare:declare",
    declares={"exporter": "livewell.exports.exporters:Exporters"},
    api={"exports": "livewell.exports.exports:Exports.of"},
    queues=("exports",),
    work="livewell.exports.worker_part:work",
    housekeeping=(
        Chore("SELECT livewell.prune_exports(%s, %s)", lambda settings: (settings.export_tombstone_days, 1000)),
    ),
    gauges="livewell.exports.gauges:GAUGES",
    checks="livewell.exports.doctor:CHECKS",
    stuck="livewell.exports.stuck:stuck",
)
