"""`livewell outbox dead`: events that a sink did not take in the end."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.output import AS_JSON, Column, print_json, print_table, say_more, short
from livewell.cli.terminal import echo
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell


class EventId(click.ParamType[str]):
    """An event's id, as lists show it, or its number alone."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Text of the form that livewell.event_number() reads."""
        text = str(value)
        if _EVENT.fullmatch(text) is None:
            self.fail(f"{value!r} is not an event's id; those are like 1f0c9a3e-42, or 42", param, ctx)
        return text


_EVENT = re.compile(r"(?:[0-9a-f]{8}-)?[0-9]{1,18}", re.ASCII)
IDS = click.argument("ids", metavar="[ID]...", nargs=-1, type=EventId())
SINK = click.option("--sink", metavar="NAME", help="Only this sink.")
TOPIC = click.option("--topic", metavar="NAME", help="Only this topic.")
REASON = click.option("--reason", type=click.Choice(["attempts", "refused", "lost"]), help="Only what died so.")
ALL = click.option("--all", "everything", is_flag=True, help="All of them.")


@group("dead")
def dead() -> None:
    """List dead letters of the outbox, redrive and discard them."""


@dead.command("list")
@SINK
@TOPIC
@REASON
@click.option("--groups", is_flag=True, help="Count them by sink, topic and reason.")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=50, show_default=True, metavar="N", help="At most this many."
)
@click.option("--after", metavar="NUMBER:SINK", help="Go on after this one: the next page.")
@AS_JSON
def list_dead(
    *,
    sink: str | None,
    topic: str | None,
    reason: str | None,
    groups: bool,
    limit: int,
    after: str | None,
    as_json: bool,
) -> None:
    """List dead letters by number; the newest groups with --groups."""
    if groups:
        _print_groups(limit, as_json=as_json)
        return
    place = _place(after)

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        admin = app.outbox.admin
        rows = await admin.dead(sink=sink, topic=topic, reason=reason, after=place, limit=limit)
        return rows, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("event"), Column("sink"), Column("topic"), Column("tenant"), Column("key", elastic=True)]
    columns += [Column("reason"), Column("died"), Column("parks"), Column("detail", elastic=True)]
    print_table(columns, (_cells(row, now) for row in rows), empty="There are no dead letters.")
    say_more(rows, limit, lambda row: f"{row['number']}:{row['sink']}")


@dead.command("show")
@click.argument("event_id", metavar="ID", type=EventId())
@click.option("--reveal", is_flag=True, help="Show the payload as it is stored, secrets included.")
@AS_JSON
def show(*, event_id: str, reveal: bool, as_json: bool) -> None:
    """Show one dead letter: the event, and what each sink said of it."""
    from livewell.cli.commands.outbox import print_event  # noqa: PLC0415 - it names this module
    from livewell.errors import EventNotFound  # noqa: PLC0415 - heavy

    async def fetch(app: Livewell) -> tuple[dict[str, Any], datetime]:
        record = await app.outbox.admin.event(event_id)
        if not any(one["state"] == "dead" for one in record["sinks"]):
            raise EventNotFound(
                f"event {event_id} is no dead letter of any sink; see: livewell outbox events show {event_id}"
            )
        return record, await database_now(app)

    record, now = with_app(fetch)
    print_event(record, now, as_json=as_json, reveal=reveal)


@dead.command("redrive")
@IDS
@SINK
@TOPIC
@REASON
@ALL
@AS_JSON
@click.pass_context
def redrive(
    ctx: click.Context,
    *,
    ids: tuple[str, ...],
    sink: str | None,
    topic: str | None,
    reason: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Give dead letters another life, in front of what waits behind them.

    Say which: ids (with --sink only of that one), or --sink, --topic and --reason, or --all. Exit 1
    when nothing of the ids was a dead letter.
    """
    _check_which(ctx, ids, sink or topic or reason, topic or reason, everything=everything)

    async def act(app: Livewell) -> int:
        admin = app.outbox.admin
        if ids:
            return await admin.redrive(ids, sink=sink)
        return await admin.redrive_all(sink=sink, topic=topic, reason=reason)

    n = with_app(act)
    print_json({"redriven": n}) if as_json else echo(f"{n:,} dead letter{'s' * (n != 1)} redriven.")
    ctx.exit(PROBLEM if ids and not n else 0)


@dead.command("discard")
@IDS
@SINK
@TOPIC
@REASON
@ALL
@click.option("--yes", is_flag=True, help="Needed without ids: they are gone for good.")
@AS_JSON
@click.pass_context
def discard(
    ctx: click.Context,
    *,
    ids: tuple[str, ...],
    sink: str | None,
    topic: str | None,
    reason: str | None,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete dead letters for good; what is parked behind them goes, in order.

    Say which: ids (with --sink only of that one), or --sink, --topic and --reason, or --all. Exit 1
    when nothing of the ids was a dead letter.
    """
    _check_which(ctx, ids, sink or topic or reason, topic or reason, everything=everything)
    if not ids and not yes:
        raise click.UsageError("they are gone for good; look with: livewell outbox dead list, then add --yes", ctx)

    async def act(app: Livewell) -> int:
        admin = app.outbox.admin
        if ids:
            return await admin.discard(ids, sink=sink)
        return await admin.discard_all(sink=sink, topic=topic, reason=reason)

    n = with_app(act)
    print_json({"discarded": n}) if as_json else echo(f"{n:,} dead letter{'s' * (n != 1)} discarded.")
    ctx.exit(PROBLEM if ids and not n else 0)


def _check_which(
    ctx: click.Context, ids: tuple[str, ...], matching: str | None, beside_sink: str | None, *, everything: bool
) -> None:
    if (ids and beside_sink) or sum((bool(ids), bool(matching) and not ids, everything)) != 1:
        raise click.UsageError("say which: ids, or --sink, --topic and/or --reason, or --all", ctx)


def _place(after: str | None) -> tuple[int, str] | None:
    if after is None:
        return None
    number_text, _, sink = after.partition(":")
    if not (number_text.isascii() and number_text.isdigit() and len(number_text) < 19 and sink):
        raise click.BadParameter(f"{after!r}: write NUMBER:SINK, as the page before said", param_hint="--after")
    return int(number_text), sink


def _print_groups(limit: int, *, as_json: bool) -> None:
    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.outbox.admin.dead_groups(limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("sink"), Column("topic"), Column("reason"), Column("n", number=True), Column("latest")]
    cells = (
        [
            row["sink"],
            row["topic"],
            row["reason"],
            f"{row['n']:,}{'+' if row['is_more'] else ''}",
            age(row["last_at"], now),
            short(row["detail"]),
        ]
        for row in rows
    )
    print_table([*columns, Column("detail", elastic=True)], cells, empty="There are no dead letters.")


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    return [
        row["id"],
        row["sink"],
        row["topic"],
        row["tenant"],
        "" if row["key"] is None else row["key"],
        f"{row['reason']} ({number(row['attempt'])})" if row["reason"] == "attempts" else row["reason"],
        age(row["died_at"], now),
        "parks" if row["parks"] else "",
        short(row["detail"]),
    ]
