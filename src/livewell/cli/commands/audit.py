"""`livewell audit`: who did what by hand, when and from where."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, LIMIT, Column, JobId, print_json, print_table, say_next
from livewell.words import age

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.operations.audit import Acts


@group("audit")
def audit() -> None:
    """List what operators did."""


@audit.command("list")
@click.option("--actor", metavar="WHO", help="Of this one: key:<id>, jwt:<issuer>:<sub>, cli:<user>@<machine>.")
@click.option("--action", metavar="WHAT", help="One, as queues.pause, or all of a kind: queues.")
@click.option("--subject", metavar="NAME", help="What it was done to.")
@click.option("--since", metavar="TIME", help="From then on: 2h ago, or an instant such as 2026-11-18T03:00Z.")
@click.option("--until", metavar="TIME", help="Before then, written likewise.")
@click.option("--before", type=JobId(), default=None, metavar="ID", help="Go on before this id: the next page.")
@LIMIT
@AS_JSON
def list_audit(*, before: int | None, limit: int, as_json: bool, **filters: str | None) -> None:
    """List who did what to what and from where, the newest first."""
    from livewell.operations.audit import Audit, Filters  # noqa: PLC0415 - heavy

    wish = Filters(**filters)

    async def fetch(app: Livewell) -> tuple[Acts, datetime]:
        return await Audit(app.database).acts(wish, before=before, limit=limit), await database_now(app)

    found, now = with_app(fetch)
    if as_json:
        for row in found.rows:
            print_json(row)
        return
    columns = [Column("id", number=True), Column("when"), Column("who", elastic=True), Column("from", elastic=True)]
    columns += [Column("did"), Column("to", elastic=True), Column("change", elastic=True), Column("answer")]
    empty = "Nothing was done by hand yet." if wish == Filters() else "Nothing that was done matches."
    print_table(columns, (_cells(row, now) for row in found.rows), empty=empty)
    if found.next is not None:
        seen = f"The newest {limit:,} are shown" if len(found.rows) >= limit else "Not all lines were looked at"
        say_next(seen, "--before", found.next)


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    who = [str(row["id"]), age(row["at"], now), row["actor"], row["origin"] or ""]
    return [*who, row["action"], row["subject"], _change(row), row["answer"]]


def _change(row: dict[str, Any]) -> str:
    """before → after, or the arguments; and how many."""
    before, after = (None if row[name] is None else json.dumps(row[name]) for name in ("before", "after"))
    given = json.dumps(row["arguments"]) if row["arguments"] else None
    change = " → ".join(filter(None, (before, after))) or given or ""
    return change if row["n"] is None else f"{change} ({row['n']:,})".strip()
