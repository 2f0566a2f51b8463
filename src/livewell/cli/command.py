"""How commands are found, how they fail, and with which exit code.

    0  fine, or stopped as asked        1  found a problem        2  wrong usage or configuration        130  interrupted

Whatever goes wrong is one line, `livewell: <command>: <what happened, the value, what mends it>`;
LIVEWELL_LOG_LEVEL=debug adds the traceback.
"""

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import click

from livewell.capability import Capability, CommandEntry, built_in, capabilities
from livewell.cli.terminal import echo
from livewell.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    InvalidOption,
    InvalidPayload,
    LivewellError,
)
from livewell.telemetry.redact import redact

OK, PROBLEM, USAGE, INTERRUPTED = 0, 1, 2, 130

_USAGE_ERRORS = (ConfigurationError, InvalidOption, InvalidPayload)  # the caller gave what is not allowed

# Errors raised below the command line name themselves too: "livewell migrate: …".
_OWN_NAME = re.compile(r"^livewell(?: \w+)?: ")


HEADINGS = ("Start here", "Run", "Fresh data", "Look and mend", "This machine")  # of the help; others follow


def commands(of: Sequence[Capability]) -> dict[str, tuple[Capability, CommandEntry]]:
    """The commands of these capabilities by name, in the order of the help."""
    found = [(one, entry) for one in of for entry in one.commands]

    def place(offer: tuple[Capability, CommandEntry]) -> tuple[int, str, int, str]:
        entry = offer[1]
        known = entry.heading in HEADINGS
        heading = HEADINGS.index(entry.heading) if known else len(HEADINGS)
        return heading, "" if known else entry.heading, entry.place, entry.name

    return {entry.name: (one, entry) for one, entry in sorted(found, key=place)}


class Command(click.Command):
    """A command that turns what goes wrong into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; see the module's docstring for what becomes of errors."""
        with _reported(ctx):
            return super().invoke(ctx)


class Group(click.Group):
    """A group of such commands; alone it shows its help."""

    command_class = Command
    group_class = type  # a group in a group is one of these, too

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.no_args_is_help = True

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the file, which is the order of use."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or an error that says which there are."""
        found = super().get_command(ctx, cmd_name)
        if found is None and not ctx.resilient_parsing:
            raise _no_such(ctx, cmd_name, self.list_commands(ctx))
        return found


class RootGroup(Group):
    """`livewell` itself: commands are imported when they are needed, help has headings, errors are one line."""

    def __init__(self) -> None:
        super().__init__(
            "livewell",
            help="Keeps data from other people's APIs fresh for whoever is watching it, within their limits, "
            "and shows how fresh it is. "
            "Its jobs are a Postgres queue that loses nothing. Without DATABASE_URL an embedded Postgres is used.",
            epilog="Every command explains itself: livewell COMMAND --help. Settings: livewell settings.",
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        self.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_version,
                help="Say which release this is.",
            )
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the help."""
        return list(commands(capabilities()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name.

        Ours are looked for first: they need no list of installed packages, and work beside a
        capability of another package that is broken.
        """
        offer = commands(built_in()).get(cmd_name) or commands(capabilities()).get(cmd_name)
        if offer is None:
            if ctx.resilient_parsing:  # completion asks what there could be
                return None
            raise _no_such(ctx, cmd_name, self.list_commands(ctx))
        capability, entry = offer
        command = capability.load(f"command {entry.name}", entry.command)
        if not isinstance(command, click.Command):
            raise ConfigurationError(
                f"capability {capability.name}: command {entry.name} is {entry.command}, which is of type "
                f"{type(command).__name__}, not a command; make one with livewell.cli.command.command or group"
            )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list per heading."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for name, (_, entry) in commands(capabilities()).items():
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                headings.setdefault(entry.heading, []).append((name, command.get_short_help_str(limit=80)))
        for heading, rows in headings.items():
            with formatter.section(heading):
                formatter.write_dl(rows, col_max=12)

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command line and exit."""
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except click.UsageError as error:
            sys.exit(_say_usage(error))
        except ConfigurationError as error:  # a capability that cannot be loaded: no command has begun
            say(f"livewell: {error}")
            sys.exit(USAGE)
        except Problem as error:
            say(f"livewell: {error.message}")
            sys.exit(error.code)
        except click.ClickException as error:
            say(f"livewell: {error.format_message()}")
            sys.exit(error.exit_code)
        except click.Abort:
            say("livewell: interrupted")
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else OK)


class Problem(click.ClickException):
    """One line for the user, already complete."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.code = exit_code


def say(text: str) -> None:
    """Write to stderr, with secrets hidden: no error text is trusted to have none."""
    echo(redact(text), err=True)


def debugging() -> bool:
    """Whether tracebacks are wanted.

    Asked of the environment alone, for the settings may be what is wrong.
    """
    return os.environ.get("LIVEWELL_LOG_LEVEL", "").strip().lower() == "debug"


def command_name(ctx: click.Context) -> str:
    """`jobs list` of `livewell jobs list`."""
    return ctx.command_path.partition(" ")[2]


@contextlib.contextmanager
def _reported(ctx: click.Context) -> Iterator[None]:
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise
    except LivewellError as error:
        _trace()
        code = USAGE if isinstance(error, _USAGE_ERRORS) else PROBLEM
        raise Problem(_line(ctx, _OWN_NAME.sub("", str(error)) + _hint(error)), code) from error
    except Exception as error:  # the last line of defence: a person reads this, and a traceback helps them little
        _trace()
        hint = "" if debugging() else " Run it again with LIVEWELL_LOG_LEVEL=debug to see where"
        text = f"unexpected {type(error).__name__}: {error}. This is a mistake in Livewell or in the app.{hint}"
        raise Problem(_line(ctx, text), PROBLEM) from error


def _line(ctx: click.Context, text: str) -> str:
    return f"{command_name(ctx)}: {text.strip()}".replace("\n\t", " ")  # libpq continues its lines with a tab


def _hint(error: LivewellError) -> str:
    return " Is DATABASE_URL right? See: livewell settings" if isinstance(error, DatabaseUnavailable) else ""


def _trace() -> None:
    if debugging():
        say(traceback.format_exc())


def _say_usage(error: click.UsageError) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return USAGE
    name = f"{command_name(error.ctx)}: ".removeprefix(": ") if error.ctx is not None else ""
    say(f"livewell: {name}{error.format_message()}")
    if error.ctx is not None:
        say(f"Try: {error.ctx.command_path} --help")
    return USAGE


def _no_such(ctx: click.Context, name: str, there: Sequence[str]) -> click.UsageError:
    import difflib  # noqa: PLC0415 - only for a mistake

    near = difflib.get_close_matches(name, there, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    return click.UsageError(f"there is no command {name!r}.{meant} There are: {', '.join(there)}", ctx)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's signature
    if wanted and not ctx.resilient_parsing:
        from livewell.version import VERSION  # noqa: PLC0415 - read from the package's metadata

        echo(f"livewell {VERSION}")
        ctx.exit()


def group(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Group]:
    """`@group("jobs")`: a Group from a function, whose docstring is the help."""
    return click.group(name, cls=Group, **attributes)


def command(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    """`@command("migrate")`: a Command from a function, whose docstring is the help."""
    return click.command(name, cls=Command, **attributes)
