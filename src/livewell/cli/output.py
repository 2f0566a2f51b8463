"""What commands print: tables for people, JSON for programs.

Numbers to the right, times as ages, an empty list in words.

`--json` prints one JSON object per line for lists and one for everything else, with stable keys and
ISO times.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import click

from livewell.cli.terminal import console, echo
from livewell.telemetry.control_characters import escaped, printable
from livewell.telemetry.logs import hide
from livewell.telemetry.redact import redact

if TYPE_CHECKING:
    from rich.table import Table


class JobId(click.ParamType[int]):
    """A job's number, as `jobs list` shows it."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """A whole number that a bigint holds."""
        text = str(value)
        if not (text.isascii() and text.isdigit() and int(text) < 2**63):
            self.fail(f"{value!r} is not a job's id; those are whole numbers, see: livewell jobs list", param, ctx)
        return int(text)


AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
LIMIT = click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=50,
    show_default=True,
    metavar="N",
    help="At most this many, up to 1000.",
)
AFTER = click.option("--after", type=JobId(), default=0, metavar="ID", help="Go on after this id: the next page.")

_CELL_CHARS_MAX = 60
_MARK = "\ufdd0"  # stands for nothing in any text
_DIGITS = re.compile(f'"{_MARK}(-?[0-9]+(?:[.][0-9]+)?)"')
_ELASTIC_CHARS_MIN = 6


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its heading, whether it holds numbers, and whether it gives way on a narrow terminal."""

    heading: str
    number: bool = False
    elastic: bool = False


def print_json(value: Mapping[str, Any], *, as_is: Mapping[str, Any] | None = None) -> None:
    """One JSON object on one line, secrets hidden, except in what is to be printed as it is."""
    text = json.dumps(hide(dict(value)) | dict(as_is or {}), default=_plain, ensure_ascii=False)
    echo(escaped(_DIGITS.sub(r"\1", text)))


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """A table without the columns that nobody fills, or the words for there being nothing."""
    filled = [[printable(redact(cell)) for cell in row] for row in rows]
    if not filled:
        echo(empty)
        return
    shown = [(column, cells) for column, *cells in zip(columns, *filled, strict=True) if any(cells)]
    out = console()
    if out.is_terminal:
        out.print(_table(shown, out.width))
        return
    out.width = 1000  # a pipe has no edge: nothing is cut, nothing is padded
    with out.capture() as captured:
        out.print(_table(shown, out.width))
    echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _table(columns: Sequence[tuple[Column, Sequence[str]]], width: int) -> Table:
    from rich import box  # noqa: PLC0415 - heavy
    from rich.table import Table  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415 - heavy

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for (column, _), size in zip(columns, _widths(columns, width), strict=True):
        justify: Literal["left", "right"] = "right" if column.number else "left"
        table.add_column(column.heading, justify=justify, no_wrap=True, overflow="ellipsis", width=size)
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _widths(columns: Sequence[tuple[Column, Sequence[str]]], width: int) -> list[int]:
    """What each column needs; where that is too much, the widest elastic one gives way first."""
    sizes = [max(map(len, (column.heading, *cells))) for column, cells in columns]
    elastic = [place for place, (column, _) in enumerate(columns) if column.elastic]
    while elastic and sum(sizes) + 2 * (len(sizes) - 1) > width:
        widest = max(elastic, key=sizes.__getitem__)
        if sizes[widest] <= _ELASTIC_CHARS_MIN:
            break
        sizes[widest] -= 1
    return sizes


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one pair per line."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        lines = printable(redact(str(value))).splitlines() or [""]
        echo(f"{name:<{width}}  {lines[0]}".rstrip())
        for line in lines[1:]:
            echo(f"{'':<{width}}  {line}")


def say_more(rows: Sequence[Mapping[str, Any]], limit: int, place: Callable[[Mapping[str, Any]], object]) -> None:
    """Below a full page: how to see the next one.

    place: where a row stands, as --after takes it.
    """
    if len(rows) >= limit:
        say_next(f"The first {limit:,} are shown", "--after", place(rows[-1]))


def say_next(shown: str, option: str, place: object) -> None:
    """What part of a list is shown, and with which option the next part comes."""
    echo(f"\n{shown}; for more: {option} {shlex.quote(str(place))}")


def place_by_id(row: Mapping[str, Any]) -> object:
    """Where a row stands in a list that is ordered by id."""
    return row["id"]


def short(text: str | None) -> str:
    """The first line, cut to fit a table."""
    line = (text or "").strip().splitlines()[0] if (text or "").strip() else ""
    return line if len(line) <= _CELL_CHARS_MAX else line[: _CELL_CHARS_MAX - 1] + "…"


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{_MARK}{value:f}"  # the json module has no way to write the digits of a number as they are
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)
