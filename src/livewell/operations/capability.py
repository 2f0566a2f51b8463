"""Operations, as a capability: system state, metrics, the doctor, warnings, the audit."""

from pathlib import Path

from livewell.capability import Capability, Chore, CommandEntry, View

CAPABILITY = Capability(
    name="operations",
    migrations=Path(__file__).parent / "sql",
    api={"warnings": "livewell.operations.warnings:Warnings.of"},
    work="livewell.operations.duties:work",
    housekeeping=(
        Chore("SELECT livewell.prune_warnings(%s, %s)", lambda settings: (settings.stat_days, 1000)),
        Chore("SELECT livewell.prune_audit(%s, %s)", lambda settings: (settings.audit_days, 1000)),
        Chore("SELECT livewell.prune_minutes(%s)", lambda _: (1000,)),
    ),
    gauges="livewell.operations.gauges:GAUGES",
    checks="livewell.operations.doctor.server:CHECKS",
    routes=(
        "livewell.server.routes.operations:router",
        "livewell.server.routes.mend:router",
        "livewell.server.routes.warnings:router",
    ),
    views=(
        View(
            "/warnings",
            "What was tolerated, and how often?",
            "livewell.server.dashboard.pages.warnings:panels",
            "Warnings",
        ),
        View("/doctor", "What is wrong, and what mends it?", "livewell.server.dashboard.pages.doctor:panels", "Doctor"),
        View("/audit", "Who did what?", "livewell.server.dashboard.pages.audit:panels", "Audit", "operate"),
    ),
    commands=(
        CommandEntry("state", "livewell.cli.commands.state:state", "Look and mend", 30),
        CommandEntry("doctor", "livewell.cli.commands.doctor:doctor", "Look and mend", 40),
        CommandEntry("warnings", "livewell.cli.commands.warnings:warnings", "Look and mend", 140),
        CommandEntry("audit", "livewell.cli.commands.audit:audit", "Look and mend", 150),
    ),
)
