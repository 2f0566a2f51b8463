"""`livewell runs`: what became of every slot."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, LIMIT, Column, JobId, print_json, print_table, say_next, short
from livewell.words import age, number, span

if TYPE_CHECKING:
    from livewell.app import Livewell

BEFORE = click.option(
    "--before", type=JobId(), default=None, metavar="ID", help="Go on before this run: the next page."
)
OUTCOME = click.option(
    "--outcome",
    type=click.Choice(["failed", "skipped", "succeeded", "running"]),
    help="Only those that ended so; failed: also those that crashed.",
)


@group("runs")
def runs() -> None:
    """Read the history of schedules: who ran what, when, and how it ended."""


@runs.command("list")
@OUTCOME
@LIMIT
@BEFORE
@AS_JSON
def list_runs(*, outcome: str | None, limit: int, before: int | None, as_json: bool) -> None:
    """List the latest runs of all schedules, the newest first."""
    _show(None, outcome, limit, before, as_json=as_json)


@runs.command("history")
@click.argument("name", metavar="NAME")
@OUTCOME
@LIMIT
@BEFORE
@AS_JSON
def history(*, name: str, outcome: str | None, limit: int, before: int | None, as_json: bool) -> None:
    """List the runs of one schedule, the newest first."""
    _show(name, outcome, limit, before, as_json=as_json)


def _show(name: str | None, outcome: str | None, limit: int, before: int | None, *, as_json: bool) -> None:
    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], int | None, datetime]:
        admin = app.schedule_admin
        if outcome is None:
            found = await admin.runs(name, before=before, limit=limit)
            following = found[-1]["id"] if len(found) >= limit else None
        else:
            found, following = await admin.runs_that(outcome, name, before=before, limit=limit)
        if name is not None and not found and before is None and following is None:
            await admin.check(name)  # the history outlives its schedule: only now may it be a slip of the pen
        return found, following, await database_now(app)

    rows, following, now = with_app(fetch)
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
    empty = "There are no runs yet." if outcome is None else "No run among those that were looked at ended so."
    print_table(columns, (_cells(row, now) for row in rows), empty=empty)
    if following is not None:
        shown = f"The newest {len(rows):,} are shown" if len(rows) >= limit else "Not all runs were looked at"
        say_next(shown, "--before", following)


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
