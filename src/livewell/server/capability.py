"""The HTTP server, as a capability: health, logins, pages, keys."""

from pathlib import Path

from livewell.capability import Capability, CommandEntry, View

CAPABILITY = Capability(
    name="server",
    migrations=Path(__file__).parent / "sql",
    checks="livewell.server.doctor:CHECKS",
    routes=(
        "livewell.server.routes.health:router",
        "livewell.server.routes.logins:router",
        "livewell.server.pages:router",
        "livewell.server.dashboard.live:router",
    ),
    views=(
        View("/", "Is everything fresh?", "livewell.server.dashboard.pages.overview:panels", "Overview"),
        View("/ui", "What does each part look like?", "livewell.server.dashboard.pages.ui:panels"),
    ),
    commands=(
        CommandEntry("serve", "livewell.cli.commands.serve:serve", "Run", 10),
        CommandEntry("health", "livewell.cli.commands.health:health", "Look and mend", 120),
        CommandEntry("keys", "livewell.cli.commands.keys:keys", "Look and mend", 160),
    ),
)
