"""The command line. One file per command group; what there is stands in COMMANDS, and nowhere else.

A command's module is imported only when the command is used or help is shown, and it imports what is heavy inside its functions.
"""

from livewell.cli.command import Entry, RootGroup

__all__ = ["COMMANDS", "cli", "main"]

# Every command, in the order and under the headings of `livewell --help`: the module has an attribute of that name.
COMMANDS = (
    Entry("demo", "livewell.cli.demo", "Start here"),
    Entry("up", "livewell.cli.up", "Start here"),
    Entry("serve", "livewell.cli.serve", "Run"),
    Entry("worker", "livewell.cli.worker", "Run"),
    Entry("migrate", "livewell.cli.migrate", "Run"),
    Entry("types", "livewell.cli.types", "Fresh data"),
    Entry("get", "livewell.cli.get", "Fresh data"),
    Entry("watch", "livewell.cli.watch", "Fresh data"),
    Entry("why", "livewell.cli.why", "Look and mend"),
    Entry("plan", "livewell.cli.plan", "Look and mend"),
    Entry("state", "livewell.cli.state", "Look and mend"),
    Entry("doctor", "livewell.cli.doctor", "Look and mend"),
    Entry("upstreams", "livewell.cli.upstreams", "Look and mend"),
    Entry("queues", "livewell.cli.queues", "Look and mend"),
    Entry("jobs", "livewell.cli.jobs", "Look and mend"),
    Entry("dead", "livewell.cli.dead", "Look and mend"),
    Entry("schedules", "livewell.cli.schedules", "Look and mend"),
    Entry("runs", "livewell.cli.runs", "Look and mend"),
    Entry("singletons", "livewell.cli.singletons", "Look and mend"),
    Entry("health", "livewell.cli.health", "Look and mend"),
    Entry("alerts", "livewell.cli.alerts", "Look and mend"),
    Entry("warnings", "livewell.cli.warnings", "Look and mend"),
    Entry("audit", "livewell.cli.audit", "Look and mend"),
    Entry("keys", "livewell.cli.keys", "Look and mend"),
    Entry("db", "livewell.cli.db", "This machine"),
    Entry("settings", "livewell.cli.settings", "This machine"),
    Entry("docs", "livewell.cli.docs", "This machine"),
    Entry("bench", "livewell.cli.bench", "This machine"),
)

cli = RootGroup(COMMANDS)


def main() -> None:
    """The entry point of the `livewell` program."""
    cli.main(prog_name="livewell")
