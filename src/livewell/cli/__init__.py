"""The command line. One file per command group; what there is stands in COMMANDS, and nowhere else.

A command's module is imported only when the command is used or help is shown, and it imports what is heavy inside its functions.
"""

from livewell.cli.command import Entry, RootGroup

__all__ = ["COMMANDS", "cli", "main"]

# Every command, in the order and under the headings of `livewell --help`: the module has an attribute of that name.
COMMANDS = (
    Entry("demo", "livewell.cli.commands.demo", "Start here"),
    Entry("up", "livewell.cli.commands.up", "Start here"),
    Entry("serve", "livewell.cli.commands.serve", "Run"),
    Entry("worker", "livewell.cli.commands.worker", "Run"),
    Entry("migrate", "livewell.cli.commands.migrate", "Run"),
    Entry("types", "livewell.cli.commands.types", "Fresh data"),
    Entry("get", "livewell.cli.commands.get", "Fresh data"),
    Entry("watch", "livewell.cli.commands.watch", "Fresh data"),
    Entry("why", "livewell.cli.commands.why", "Look and mend"),
    Entry("plan", "livewell.cli.commands.plan", "Look and mend"),
    Entry("state", "livewell.cli.commands.state", "Look and mend"),
    Entry("doctor", "livewell.cli.commands.doctor", "Look and mend"),
    Entry("upstreams", "livewell.cli.commands.upstreams", "Look and mend"),
    Entry("queues", "livewell.cli.commands.queues", "Look and mend"),
    Entry("jobs", "livewell.cli.commands.jobs", "Look and mend"),
    Entry("dead", "livewell.cli.commands.dead", "Look and mend"),
    Entry("schedules", "livewell.cli.commands.schedules", "Look and mend"),
    Entry("runs", "livewell.cli.commands.runs", "Look and mend"),
    Entry("singletons", "livewell.cli.commands.singletons", "Look and mend"),
    Entry("health", "livewell.cli.commands.health", "Look and mend"),
    Entry("alerts", "livewell.cli.commands.alerts", "Look and mend"),
    Entry("warnings", "livewell.cli.commands.warnings", "Look and mend"),
    Entry("audit", "livewell.cli.commands.audit", "Look and mend"),
    Entry("keys", "livewell.cli.commands.keys", "Look and mend"),
    Entry("db", "livewell.cli.commands.db", "This machine"),
    Entry("settings", "livewell.cli.commands.settings", "This machine"),
    Entry("docs", "livewell.cli.commands.docs", "This machine"),
    Entry("bench", "livewell.cli.commands.bench", "This machine"),
)

cli = RootGroup(COMMANDS)


def main() -> None:
    """The entry point of the `livewell` program."""
    cli.main(prog_name="livewell")
