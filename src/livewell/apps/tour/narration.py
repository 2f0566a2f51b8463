"""How the tour is told: a moving bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from livewell.apps.kit.terminal import fit, print_plain, print_styled

_LINES_PER_BAR = 4


class Bar:
    """One bar, from 0 to a total."""

    def __init__(self, console: Console, progress: Progress, task: TaskID, *, total: int, lines: int) -> None:
        self._console = console
        self._progress = progress
        self._task = task
        self._total = total
        self._lines = lines  # without a terminal it is so many lines
        self._said = 0

    def move(self, done: int, note: str) -> None:
        """Show how far it is."""
        if self._console.is_terminal:
            self._progress.update(self._task, completed=done, note=note)
            return
        quarter = done * self._lines // self._total
        if quarter > self._said:
            self._said = quarter
            self._console.print(f"   {note}")


class Narrator:
    """Tells the steps, numbered."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step = 0
        fit(console, width=100)

    def title(self, text: str, what: str) -> None:
        """The headline."""
        self._console.print()
        self._console.print(Text(text, style="bold"))
        self._console.print(Text(what, style="dim"))
        self._console.print()

    def step(self, heading: str, text: str, why: str = "", *, style: str = "") -> None:
        """One step: what happened, and under it what that means."""
        self._step += 1
        grid = Table.grid(padding=(0, 2))
        grid.add_column(justify="right", style="bold cyan")
        grid.add_column(style="bold", min_width=9)
        grid.add_column(overflow="fold")
        said = Text().append(text, style=style)
        if why:
            said.append(f"\n{why}", style="dim")
        grid.add_row(str(self._step), heading, said)
        print_plain(self._console, grid)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Something that takes a moment; shown on a terminal only, and gone when it is over."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status(Text(what, style="dim"), spinner="dots", spinner_style="cyan"):
            yield

    def end(self, text: str, why: str, *, good: bool) -> None:
        """The last words."""
        print_styled(self._console, [(text, "bold green" if good else "bold red"), (why, "dim"), ("", "")])

    @contextmanager
    def bar(self, total: int, *, stays: bool) -> Iterator[Bar]:
        """A bar below whatever is told meanwhile; one that does not stay is not worth a line
        without a terminal.
        """
        progress = Progress(
            TextColumn("   "),
            BarColumn(bar_width=30, complete_style="cyan", finished_style="green"),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[note]}"),
            console=self._console,
            transient=not stays,
            disable=not self._console.is_terminal,
        )
        with progress:
            task = progress.add_task("", total=total, note="")
            yield Bar(self._console, progress, task, total=total, lines=_LINES_PER_BAR if stays else 0)
