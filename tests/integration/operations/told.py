"""The commands that a finding tells.

Each must exist, with every option it is given, and take as many arguments as it is told with.
"""

from __future__ import annotations

import re
import shlex
from typing import cast

import click

from livewell.cli import cli
from livewell.operations.doctor import Finding

# Up to what ends a command in a sentence: a comma, a semicolon, a bracket, or the words after it.
_COMMAND = re.compile(r"(?<![\w/'=])livewell (?:'[^']*'|(?!, |; | \(|\)| for | sweeps| and ).)+")


def told(finding: Finding) -> list[list[str]]:
    """The commands of the finding, as words without the first."""
    return [shlex.split(text.strip().rstrip(":."))[1:] for text in _COMMAND.findall(finding.command)]


def check_told(finding: Finding) -> None:
    """Fail on a command that does not exist, an option it does not have, or arguments it does not take."""
    for words in told(finding):
        command, rest = _resolved(finding, words)
        options = {name: one for one in command.params if isinstance(one, click.Option) for name in one.opts}
        places = [one for one in command.params if isinstance(one, click.Argument)]
        given = 0
        while rest:
            word = rest.pop(0)
            if not word.startswith("-"):
                given += 1
                continue
            assert word in options, f"{finding.word}: livewell {' '.join(words)}: there is no {word}"
            if not options[word].is_flag:
                assert rest, f"{finding.word}: {word} has no value"
                rest.pop(0)
        least = sum(one.required for one in places)
        most = len(places) if all(one.nargs == 1 for one in places) else 1000
        assert least <= given <= most, f"{finding.word}: livewell {' '.join(words)}: {given} arguments"


def _resolved(finding: Finding, words: list[str]) -> tuple[click.Command, list[str]]:
    found: click.Command = cli
    rest = list(words)
    context = click.Context(cli)
    while isinstance(found, click.Group):
        assert rest, f"{finding.word}: livewell {' '.join(words)} is not a whole command"
        name = rest.pop(0)
        assert name in found.list_commands(context), f"{finding.word}: there is no command livewell {' '.join(words)}"
        found = cast("click.Command", found.get_command(context, name))
    return found, rest
