"""Exports, as a capability."""

from pathlib import Path

from livewell.capability import Capability

CAPABILITY = Capability(
    name="exports",
    migrations=Path(__file__).parent / "sql",
    declare="livewell.exports.declare:declare",
    declares={"exporter": "livewell.exports.exporters:Exporters"},
    api={"exports": "livewell.exports.exports:Exports.of"},
)
