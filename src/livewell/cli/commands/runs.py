"""`livewell runs`: what became of every slot."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, LIMIT, Column, JobId, print_json, print_table, short
from livewell.cli.terminal import echo
from livewell.words import age, number, span

if TYPE_CHECKING:
    from livewell.app import Livewell

BEFORE = click.option(
    "--before", type=JobId(), default=None, metavar="ID", help="Go on before this run: the next page."
)


@group("runs")
def runs() -> None:
    """Read the history of schedules: who ran what, when, and how it ended."""


@runs.command("list")
@LIMIT
@BEFORE
@AS_JSON
def list_runs(*, limit: int, before: int | None, as_json: bool) -> None:
    """List the latest runs of all schedules, the newest first."""
    _show(None, limit, before, as_json=as_json)


@runs.command("history")
@click.argument("name", metavar="NAME")
@LIMIT
@BEFORE
@AS_JSON
def history(*, name: str, limit: int, before: int | None, as_json: bool) -> None:
    """List the runs of one schedule, the newest first."""
    _show(name, limit, before, as_json=as_json)


def _show(name: str | None, limit: int, before: int | None, *, as_json: bool) -> None:
    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        found = await app.schedule_admin.runs(name, before=before, limit=limit)
        if name is not None and not found and before is None:
            await app.schedule_admin.check(
                name
            )  # the history outlives its schedule, so only now may it be a slip of the pen
        return found, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [
        Column("id", number=True),
        Column("schedule"),
        Column("state"),
        Column("due"),
        Column("took", number=True),
    ]
    columns += [Column("rows", number=True), Column("by", elastic=True), Column("note", elastic=True)]
    print_table(columns, (_cells(row, now) for row in rows), empty="There are no runs yet.")
    if len(rows) >= limit:
        echo(f"\nThe newest {limit:,} are shown; for more: --before {rows[-1]['id']}")


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    ended = row["finished_at"] or now
    took = span((ended - row["started_at"]).total_seconds()) if row["started_at"] else ""
    note = row["error"] or ("asked for" if row["asked"] else "")
    if row["reason"]:
        note = row["reason"] + (f", {row['slots']:,} slots" if row["slots"] > 1 else "")
    return [
        str(row["id"]),
        row["schedule"],
        row["state"],
        age(row["due_at"], now),
        took,
        number(row["rows_affected"]),
        row["holder"],
        short(note),
    ]
