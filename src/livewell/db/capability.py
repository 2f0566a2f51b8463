"""The database, as a capability: connections, migrations, the embedded server."""

from pathlib import Path

from livewell.capability import Capability, CommandEntry

CAPABILITY = Capability(
    name="db",
    migrations=Path(__file__).parent / "sql",
    commands=(
        CommandEntry("migrate", "livewell.cli.commands.migrate:migrate", "Run", 30),
        CommandEntry("db", "livewell.cli.commands.db:db", "This machine", 10),
    ),
)
