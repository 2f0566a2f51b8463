"""`livewell audit`: who did what by hand, and when."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.commands.upstreams import mender
from livewell.cli.output import AS_JSON, LIMIT, Column, JobId, print_json, print_table
from livewell.cli.terminal import echo
from livewell.words import age

if TYPE_CHECKING:
    from livewell.app import Livewell


@group("audit")
def audit() -> None:
    """List what operators did."""


@audit.command("list")
@click.option("--before", type=JobId(), default=None, metavar="ID", help="Go on before this id: the next page.")
@LIMIT
@AS_JSON
def list_audit(*, before: int | None, limit: int, as_json: bool) -> None:
    """List who did what to what, the newest first."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await mender(app).audit(before=before, limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("id", number=True), Column("when"), Column("who", elastic=True), Column("login", elastic=True)]
    columns += [Column("did"), Column("to", elastic=True), Column("with", elastic=True), Column("answer")]
    print_table(columns, (_cells(row, now) for row in rows), empty="Nothing was done by hand yet.")
    if len(rows) >= limit:
        echo(f"\nThe newest {limit:,} are shown; for more: --before {rows[-1]['id']}")


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    given = json.dumps(row["arguments"]) if row["arguments"] else ""
    who = [str(row["id"]), age(row["at"], now), row["actor"], row["login"]]
    return [*who, row["action"], row["subject"], given, row["answer"]]
