"""Limiters, as a capability."""

from pathlib import Path

from livewell.capability import Capability, Chore

CAPABILITY = Capability(
    name="limits",
    migrations=Path(__file__).parent / "sql",
    housekeeping=(Chore("SELECT livewell.prune_limits(%s)", lambda _: (1000,)),),
    gauges="livewell.limits.gauges:GAUGES",
    checks="livewell.limits.doctor:CHECKS",
    stuck="livewell.limits.stuck:stuck",
)
