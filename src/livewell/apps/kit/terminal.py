"""The words on a console.

They are styled on a terminal. In a file or a pipe they are plain lines of a fixed width, without
padding.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

__all__ = ["fit", "print_plain", "print_styled"]


def fit(console: Console, *, width: int) -> None:
    """Give a console that is no terminal a width: rich would take 80 columns."""
    if not console.is_terminal:
        console.width = width


def print_plain(console: Console, what: RenderableType) -> None:
    """Print; a file or a pipe gets no padding at the ends of lines."""
    if console.is_terminal:
        console.print(what)
        return
    with console.capture() as captured:
        console.print(what)
    console.print(Text("\n".join(line.rstrip() for line in captured.get().splitlines())))


def print_styled(console: Console, lines: Sequence[tuple[str, str]]) -> None:
    """Print the last words, after an empty line: pairs of text and style. Only a terminal gets the
    style.
    """
    console.print()
    for text, style in lines:
        print_plain(console, Text(text, style=style if console.is_terminal else ""))
