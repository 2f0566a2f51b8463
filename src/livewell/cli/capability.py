"""Commands that belong to the command line itself."""

from livewell.capability import Capability, CommandEntry

CAPABILITY = Capability(
    name="cli",
    commands=(
        CommandEntry("up", "livewell.cli.commands.up:up", "Start here", 20),
        CommandEntry("settings", "livewell.cli.commands.settings:settings", "This machine", 20),
        CommandEntry("docs", "livewell.cli.commands.docs:docs", "This machine", 30),
        CommandEntry("bench", "livewell.cli.commands.bench:bench", "This machine", 40),
        CommandEntry("screenshots", "livewell.cli.commands.screenshots:screenshots", "This machine", 50),
    ),
)
