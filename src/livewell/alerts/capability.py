"""Alerts, as a capability."""

from pathlib import Path

from livewell.capability import Capability, CommandEntry

CAPABILITY = Capability(
    name="alerts",
    migrations=Path(__file__).parent / "sql",
    api={"alerts": "livewell.alerts.admin:AlertAdmin.of"},
    work="livewell.alerts.duties:work",
    gauges="livewell.alerts.gauges:GAUGES",
    checks="livewell.alerts.doctor:CHECKS",
    stuck="livewell.alerts.stuck:stuck",
    routes=("livewell.server.routes.alerts:router",),
    commands=(CommandEntry("alerts", "livewell.cli.commands.alerts:alerts", "Look and mend", 130),),
)
