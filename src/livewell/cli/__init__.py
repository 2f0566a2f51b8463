"""The command line. One file per command group; capabilities say which there are (capability.py).

A command's module is imported only when the command is used or help is shown. It imports heavy
modules inside its functions.
"""

from livewell.cli.command import RootGroup

__all__ = ["cli", "main"]

cli = RootGroup()


def main() -> None:
    """The entry point of the `livewell` program."""
    cli.main(prog_name="livewell")
