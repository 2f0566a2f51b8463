"""`livewell warnings`: what was tolerated, and how often."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, LIMIT, Column, print_json, print_table, short
from livewell.cli.terminal import echo
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell


@group("warnings")
def warnings() -> None:
    """List failures that were tolerated and counted."""


@warnings.command("list")
@click.option(
    "--hours",
    type=click.IntRange(1, 720),
    default=24,
    show_default=True,
    metavar="N",
    help="Of the last N hours, up to 720.",
)
@click.option("--type", "data_type", metavar="TYPE", help="Only those about this type.")
@LIMIT
@click.option(
    "--after", default="", metavar="CURSOR", help="Go on after this `cursor` of the JSON output: the next page."
)
@AS_JSON
def list_warnings(*, hours: int, data_type: str | None, limit: int, after: str, as_json: bool) -> None:
    """List tolerated failures by place and kind, with their rates."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        rows = await app.warnings.page(hours=hours, data_type=data_type, after=after, limit=limit)
        return rows, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [
        Column("where"),
        Column("what", elastic=True),
        Column("type"),
        Column("this hour", number=True),
        Column("in all", number=True),
    ]
    columns += [Column("per hour", number=True), Column("last"), Column("example", elastic=True)]
    print_table(columns, (_cells(row, now) for row in rows), empty=f"Nothing was tolerated within {hours} h.")
    if len(rows) >= limit:
        echo(f"\nThe first {limit:,} are shown; for more: --limit, or --json and --after")


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    counts = [number(row["last_hour"]), number(row["n"]), number(round(row["per_hour"], 1))]
    return [
        row["place"],
        short(row["what"]),
        row["type"] or "",
        *counts,
        age(row["last_at"], now),
        short(row["sample"]),
    ]
