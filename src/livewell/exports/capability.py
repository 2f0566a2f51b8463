"""Exports, as a capability."""

from pathlib import Path

from livewell.capability import Capability

CAPABILITY = Capability(name="exports", migrations=Path(__file__).parent / "sql")
