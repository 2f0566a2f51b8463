"""`livewell watch`: a live table in the terminal.

With --json, or without a terminal, a line for every change.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import command
from livewell.cli.commands.get import record
from livewell.cli.output import AS_JSON, print_json, short
from livewell.cli.terminal import console
from livewell.words import age

if TYPE_CHECKING:
    from rich.table import Table

    from livewell.app import Livewell
    from livewell.db import Presence
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
    """Show a table of the keys, drawn anew four times a second.

    Ages grow and verdicts turn without any event. rich draws in a thread of its own: it sees only
    readings that are replaced, never changed.
    """
    from rich.console import Group  # noqa: PLC0415 - heavy
    from rich.live import Live  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415 - heavy

    from livewell.db import Presence  # noqa: PLC0415 - heavy
    from livewell.refresh.registry.admin import TypeAdmin  # noqa: PLC0415 - heavy
    from livewell.telemetry import logs  # noqa: PLC0415 - heavy

    order = [column["name"] for column in (await TypeAdmin(app.database).type(name))["columns"]]
    began, begun = await database_now(app), time.monotonic()
    latest: dict[str, Reading] = {}
    seen = 0
    out = console()

    presence = Presence(app.database)

    def shown() -> Group:
        now = began + timedelta(seconds=time.monotonic() - begun)
        table = as_table(latest, keys, order, now=now, width=out.width)
        return Group(table, Text(away_words(presence, now), style="bold red")) if presence.away else Group(table)

    with logs.held_back(), Live(get_renderable=shown, console=out, refresh_per_second=4, transient=False):
        async with presence, aclosing(app.watch(name, keys)) as readings:
            async for reading in readings:
                latest[reading.key] = reading
                seen += 1
                if seen == changes:
                    return


def away_words(presence: Presence, now: datetime) -> str:
    """Since when nobody can judge what is shown; the database's clock, in the reader's own zone."""
    since = now.astimezone() - timedelta(seconds=presence.silent_seconds)
    return f"Database away since {since:%H:%M:%S}; what is shown is from before, and turns stale by itself."


def as_table(
    latest: Mapping[str, Reading], keys: Sequence[str], order: Sequence[str], *, now: datetime, width: int
) -> Table:
    """A line per key. Key, verdict and times are never cut.

    Of the values, in the order of the file, as many are shown as there is room for.
    """
    from rich import box  # noqa: PLC0415 - heavy
    from rich.table import Table  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415 - heavy

    shown = [latest[key].now() for key in keys if key in latest]
    left = {"key": [one.key for one in shown], "verdict": [one.verdict for one in shown]}
    right = {
        "source": [age(one.source_at, now) for one in shown],
        "checked": [age(one.checked_at, now) for one in shown],
        "reason": [one.reason or "" for one in shown],
    }
    right = {heading: cells for heading, cells in right.items() if any(cells)}
    values = {name: [_cell(one.value, name) for one in shown] for name in order}
    room = width - sum(_needs(heading, cells) for heading, cells in {**left, **right}.items())
    fitting: dict[str, list[str]] = {}
    for heading, cells in values.items():
        room -= _needs(heading, cells)
        if room < 0 or len(fitting) >= _COLUMNS_MAX:
            break
        fitting[heading] = cells
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    for heading in (*left, *fitting, *right):
        table.add_column(heading, justify="right" if heading in fitting else "left", no_wrap=True, overflow="ellipsis")
    for row in zip(*left.values(), *fitting.values(), *right.values(), strict=True):
        key, verdict, *cells = row
        table.add_row(Text(key), Text(verdict, style=_COLOURS.get(verdict, "")), *map(Text, cells))
    return table


def _needs(heading: str, cells: Sequence[str]) -> int:
    return max(map(len, (heading, *cells))) + 2  # and what stands between columns


def _cell(value: Any, column: str) -> str:
    """Of a list of rows, that of the last one."""
    row = value[-1] if isinstance(value, list) and value else value
    cell = row.get(column) if isinstance(row, dict) else None
    return "" if cell is None else short(str(cell))
