"""`livewell outbox replay`: history once more, with the same ids, behind what is new."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.commands.outbox_sinks import SINK_NAME
from livewell.cli.output import AS_JSON, Column, JobId, print_json, print_table, say_next
from livewell.cli.terminal import echo
from livewell.duration import moment
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell

_ID = click.argument("replay_id", metavar="ID", type=JobId())


@group("replay")
def replay() -> None:
    """Deliver past events once more; list replays, cancel one."""


@replay.command("begin")
@SINK_NAME
@click.option("--from", "start", required=True, metavar="TIME", help="Emitted from then on: 2h ago, or an instant.")
@click.option("--to", "end", metavar="TIME", help="And before that; without it until now.")
@click.option("--topic", metavar="NAME", help="Only this topic.")
@click.option("--tenant", metavar="NAME", help="Only this tenant.")
@click.option("--key", metavar="TEXT", help="Only this key.")
@click.option(
    "--rate", type=click.FloatRange(0.1, 10_000), default=100, show_default=True, metavar="N", help="Events a second."
)
@AS_JSON
def begin(
    *,
    name: str,
    start: str,
    end: str | None,
    topic: str | None,
    tenant: str | None,
    key: str | None,
    rate: float,
    as_json: bool,
) -> None:
    """Begin to deliver past events to a sink once more, while little else waits for it."""

    async def act(app: Livewell) -> int:
        now = await database_now(app)
        return await app.outbox.admin.begin_replay(
            name,
            start=_instant("from", start, now),
            end=None if end is None else _instant("to", end, now),
            topic=topic,
            tenant=tenant,
            key=key,
            rate=rate,
        )

    made = with_app(act)
    if as_json:
        print_json({"id": made, "sink": name})
    else:
        echo(f"Replay {made} begins; a worker feeds it. See how far it is: livewell outbox replay list")


@replay.command("list")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=50, show_default=True, metavar="N", help="At most this many."
)
@click.option("--before", type=JobId(), metavar="ID", help="Go on before this one: the next page.")
@AS_JSON
def list_replays(*, limit: int, before: int | None, as_json: bool) -> None:
    """List replays, the newest first, with how far each is."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.outbox.admin.replays(before=before, limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("id", number=True), Column("sink"), Column("state"), Column("of")]
    columns += [Column("looked through", number=True), Column("fed", number=True), Column("skipped", number=True)]
    print_table([*columns, Column("begun")], (_cells(row, now) for row in rows), empty="There are no replays.")
    if len(rows) >= limit:
        say_next(f"The newest {limit:,} are shown", "--before", rows[-1]["id"])


@replay.command("cancel")
@_ID
@AS_JSON
def cancel(*, replay_id: int, as_json: bool) -> None:
    """End a replay; what it has fed is still delivered."""
    done = with_app(lambda app: app.outbox.admin.cancel_replay(replay_id))
    if as_json:
        print_json({"id": replay_id, "cancelled": done})
    else:
        echo(f"Replay {replay_id} {'is cancelled' if done else 'had ended already'}.")


def _instant(name: str, text: str, now: datetime) -> datetime:
    at = moment(name, text)
    return at if isinstance(at, datetime) else now - timedelta(seconds=at)


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    of = [row[name] for name in ("topic", "tenant", "key") if row[name] is not None]
    return [
        str(row["id"]),
        row["sink"] or "(gone)",
        row["state"],
        ", ".join(of) or "everything",
        f"{row['progress']:.0%}",
        number(row["fed"]),
        number(row["skipped"]),
        age(row["created_at"], now),
    ]
