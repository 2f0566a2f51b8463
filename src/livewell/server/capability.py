"""The HTTP server, as a capability: health, logins, pages, keys."""

from pathlib import Path

from livewell.capability import Act, Capability, CommandEntry, View

CAPABILITY = Capability(
    name="server",
    migrations=Path(__file__).parent / "sql",
    checks="livewell.server.doctor:CHECKS",
    routes=(
        "livewell.server.routes.health:router",
        "livewell.server.routes.logins:router",
        "livewell.server.pages:router",
        "livewell.server.dashboard.page_stream:router",
    ),
    views=(
        View("/", "Is everything fresh?", "livewell.server.dashboard.pages.overview:panels", "Overview"),
        View("/ui", "What does each part look like?", "livewell.server.dashboard.pages.ui:panels"),
        View("/access", "Who may do what?", "livewell.server.dashboard.pages.access:panels", "Access", "operate"),
    ),
    acts=(
        Act("/logout", "livewell.server.dashboard.pages.access:log_out", ""),
        Act("/access/keys", "livewell.server.dashboard.pages.access:create", "admin"),
        Act("/access/keys/{id}/revoke", "livewell.server.dashboard.pages.access:revoke", "admin"),
        Act("/access/logins/end", "livewell.server.dashboard.pages.access:end_logins", "admin"),
        Act("/access/logins/{id}/end", "livewell.server.dashboard.pages.access:end_login", "admin"),
    ),
    commands=(
        CommandEntry("serve", "livewell.cli.commands.serve:serve", "Run", 10),
        CommandEntry("health", "livewell.cli.commands.health:health", "Look and mend", 120),
        CommandEntry("keys", "livewell.cli.commands.keys:keys", "Look and mend", 160),
    ),
)
