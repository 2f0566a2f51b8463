"""The one place where commands print.

Text from outside cannot move a cursor or forge a line (M6). Tests check that no command prints in
another way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import click

from livewell.telemetry.control_characters import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text as it can be read.

    What is printed as it is, without a line feed, has nl=False.
    """
    click.echo(printable(text), err=err, nl=nl)


def has_reader(*, err: bool = False) -> bool:
    """True if a person reads this.

    What lets somebody in is printed to a terminal, not into a file or a service's log (L8).
    """
    return (sys.stderr if err else sys.stdout).isatty()


def console(*, err: bool = False) -> Console:
    """A rich console; without a terminal it writes plain text and is as wide as the text needs."""
    stream = sys.stderr if err else sys.stdout
    return _kind()(file=stream, highlight=False, soft_wrap=not stream.isatty(), emoji=False, markup=False)


@lru_cache(maxsize=1)
def _kind() -> type[Console]:
    from rich.console import Console  # noqa: PLC0415 - heavy
    from rich.segment import Segment  # noqa: PLC0415 - heavy

    class PlainConsole(Console):
        """What rich itself tells the terminal are control segments and styles.

        In a text there is nothing to obey.
        """

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return PlainConsole
