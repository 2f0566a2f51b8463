"""`livewell watch`: a live table in the terminal; with --json, or without a terminal, a line for every change."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import command
from livewell.cli.get import record
from livewell.cli.output import AS_JSON, age, console, print_json, short

if TYPE_CHECKING:
    from datetime import datetime

    from rich.table import Table

    from livewell.app import Livewell
    from livewell.refresh.reading import Reading

_COLUMNS_MAX = 5
_COLOURS = {
    "fresh": "green",
    "unverifiable": "green",
    "lagging": "yellow",
    "stale": "yellow",
    "missing": "dim",
    "failing": "red",
}


@command("watch")
@click.argument("name", metavar="TYPE")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@click.option("--changes", type=click.IntRange(1), metavar="N", help="End after so many readings.")
@AS_JSON
def watch(*, name: str, keys: tuple[str, ...], changes: int | None, as_json: bool) -> None:
    """Keep keys fresh and show them as they change, until Ctrl-C.

    This is a viewer like any other: what is watched here is refreshed by whatever worker runs.
    """
    lines = as_json or not sys.stdout.isatty()
    try:
        with_app(lambda app: _print(app, name, keys, changes) if lines else _show(app, name, keys, changes))
    except KeyboardInterrupt:
        return


async def _print(app: Livewell, name: str, keys: tuple[str, ...], changes: int | None) -> None:
    seen = 0
    async with aclosing(app.watch(name, keys)) as readings:
        async for reading in readings:
            print_json(record(reading))
            sys.stdout.flush()
            seen += 1
            if seen == changes:
                return


async def _show(app: Livewell, name: str, keys: tuple[str, ...], changes: int | None) -> None:
    from rich.live import Live  # noqa: PLC0415 - heavy

    latest: dict[str, Reading] = {}
    seen = 0
    with Live(console=console(), refresh_per_second=8, transient=False) as live:
        async with aclosing(app.watch(name, keys)) as readings:
            async for reading in readings:
                latest[reading.key] = reading
                live.update(_table(latest, keys, await database_now(app)))
                seen += 1
                if seen == changes:
                    return


def _table(latest: dict[str, Reading], keys: tuple[str, ...], now: datetime) -> Table:
    from rich import box  # noqa: PLC0415 - heavy
    from rich.table import Table  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415 - heavy

    shown = [key for key in keys if key in latest]
    names = _names(latest[key].value for key in shown)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for heading in ("key", "verdict", *names, "source", "checked", "reason"):
        table.add_column(heading, justify="right" if heading in names else "left", no_wrap=True, overflow="ellipsis")
    for key in shown:
        reading = latest[key]
        cells = [_cell(reading.value, column) for column in names]
        times = [age(reading.source_at, now), age(reading.checked_at, now)]
        table.add_row(
            key,
            Text(reading.verdict, style=_COLOURS.get(reading.verdict, "")),
            *(Text(cell) for cell in (*cells, *times, reading.reason or "")),
        )
    return table


def _names(values: Any) -> list[str]:
    """The first few columns of whatever value there is; a list of rows shows its last one."""
    for value in values:
        row = value[-1] if isinstance(value, list) and value else value
        if isinstance(row, dict):
            return list(row)[:_COLUMNS_MAX]
    return []


def _cell(value: Any, column: str) -> str:
    row = value[-1] if isinstance(value, list) and value else value
    return short(str(row.get(column, ""))) if isinstance(row, dict) else ""
