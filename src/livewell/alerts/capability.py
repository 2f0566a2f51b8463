"""Alerts, as a capability."""

from pathlib import Path

from livewell.capability import Act, Capability, CommandEntry, View

CAPABILITY = Capability(
    name="alerts",
    migrations=Path(__file__).parent / "sql",
    api={"alerts": "livewell.alerts.admin:AlertAdmin.of"},
    work="livewell.alerts.duties:work",
    gauges="livewell.alerts.gauges:GAUGES",
    checks="livewell.alerts.doctor:CHECKS",
    stuck="livewell.alerts.stuck:stuck",
    routes=("livewell.server.routes.alerts:router",),
    views=(
        View("/alerts", "What went wrong, and who knows?", "livewell.server.dashboard.pages.alerts:panels", "Alerts"),
        View("/alerts/{id}", "What is wrong, and who knows?", "livewell.server.dashboard.pages.alerts:one_alert"),
    ),
    acts=(
        Act("/alerts/{id}/silence", "livewell.server.dashboard.pages.alerts:silence"),
        Act("/alerts/unsilence", "livewell.server.dashboard.pages.alerts:unsilence"),
        Act("/alerts/channels/{name}/test", "livewell.server.dashboard.pages.alerts:test"),
        Act("/alerts/channels/{name}/enable", "livewell.server.dashboard.pages.alerts:enable"),
    ),
    commands=(CommandEntry("alerts", "livewell.cli.commands.alerts:alerts", "Look and mend", 130),),
)
