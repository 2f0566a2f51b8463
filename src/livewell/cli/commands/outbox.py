"""`livewell outbox`: what waits for which sink, why an event has not arrived, and what mends it.

outbox.py           what waits, one event and why, emitting by hand, pausing
outbox_dead.py      dead letters: list, show, redrive, discard
outbox_sinks.py     sinks and topics
outbox_replay.py    history once more
outbox_relay.py     be a relay, or drain once
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.commands.outbox_dead import EventId, dead
from livewell.cli.commands.outbox_relay import drain, relay
from livewell.cli.commands.outbox_replay import replay
from livewell.cli.commands.outbox_sinks import SINK_COLUMNS, SINK_NAME, sink_cells, sinks, topics
from livewell.cli.output import AS_JSON, Column, print_facts, print_json, print_table, say_next, short
from livewell.cli.record import REVEAL
from livewell.cli.terminal import echo
from livewell.telemetry.control_characters import escaped
from livewell.telemetry.logs import hide
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.outbox.admin import BlockPage, OutboxAdmin

T = TypeVar("T")
EVENT = click.argument("event_id", metavar="ID", type=EventId())
_PAYLOAD_CHARS_MAX = 1_048_576
_STATES = ("failed", "sending", "parked", "draining")


@group("outbox")
def outbox() -> None:
    """Look at events on their way and mend what stands still; relay, replay, emit."""


for _part in (sinks, topics, dead, replay, relay, drain):
    outbox.add_command(_part)


@outbox.command("stats")
@AS_JSON
@click.pass_context
def stats(ctx: click.Context, *, as_json: bool) -> None:
    """Say what waits for every sink, what is dead, and who delivers. Exit 1 when something stands still."""

    async def fetch(app: Livewell) -> tuple[dict[str, Any], datetime]:
        return await app.outbox.admin.stats(), await database_now(app)

    found, now = with_app(fetch)
    if as_json:
        print_json(found)
    else:
        rows = (sink_cells(row, now) for row in found["sinks"])
        print_table(SINK_COLUMNS, rows, empty="No sink is declared; see: livewell docs howto/outbox_operate")
    stands = found["parked"] or found["dead"] or any(row["away_since"] for row in found["sinks"])
    ctx.exit(PROBLEM if stands else 0)


@outbox.command("blocks")
@click.option("--sink", metavar="NAME", help="Only this sink.")
@click.option("--state", type=click.Choice(_STATES), help="Only these.")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=50, show_default=True, metavar="N", help="At most this many."
)
@click.option("--after", metavar="CURSOR", help="Go on after this `cursor` of the JSON output: the next page.")
@AS_JSON
def blocks(*, sink: str | None, state: str | None, limit: int, after: str | None, as_json: bool) -> None:
    """List keys that wait: the event that blocks each, and how many are set aside behind it."""

    async def fetch(app: Livewell) -> tuple[BlockPage, datetime]:
        return await app.outbox.admin.blocks(sink=sink, state=state, after=after, limit=limit), await database_now(app)

    found, now = with_app(fetch)
    if as_json:
        for row in found.rows:
            print_json(row)
        return
    columns = [Column("sink"), Column("event"), Column("state"), Column("tenant"), Column("key", elastic=True)]
    columns += [Column("behind it", number=True), Column("since"), Column("again"), Column("reason", elastic=True)]
    print_table(columns, (_block_cells(row, now) for row in found.rows), empty="No key waits.")
    if found.next is not None:
        say_next("More keys wait", "--after", found.next)


@outbox.command("why")
@EVENT
@click.option("--sink", metavar="NAME", help="Only this sink.")
@AS_JSON
@click.pass_context
def why(ctx: click.Context, *, event_id: str, sink: str | None, as_json: bool) -> None:
    """Say why an event has not arrived, and the next step. Exit 1 when something stands in its way."""
    rows = administer(lambda admin: admin.why(event_id, sink=sink))
    for row in rows:
        if as_json:
            print_json({"id": event_id, **row})
        else:
            echo(f"{row['sink']}: {row['words']} {row['next']}")
    if not rows and not as_json:
        echo("No sink is declared, so nothing leaves; see: livewell docs howto/outbox_operate")
    ctx.exit(0 if all(row["code"] in ("delivered", "not_routed") for row in rows) else PROBLEM)


@outbox.command("emit")
@click.argument("topic", metavar="TOPIC")
@click.option("--payload", required=True, metavar="JSON", help="What it holds; - reads standard input.")
@click.option("--key", metavar="TEXT", help="Events of one tenant and key keep their order.")
@click.option("--tenant", default="", metavar="TEXT", help="Whose it is.")
@AS_JSON
def emit(*, topic: str, payload: str, key: str | None, tenant: str, as_json: bool) -> None:
    """Emit one event by hand; it leaves letter by letter as it is written here."""
    text = sys.stdin.read(_PAYLOAD_CHARS_MAX + 1) if payload == "-" else payload
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--payload") from None
    made = administer(lambda admin: admin.emit(topic, text, key=key, tenant=tenant))
    print_json({"id": made}) if as_json else echo(f"Event {made} is emitted; see: livewell outbox events show {made}")


@outbox.command("pause")
@SINK_NAME
@AS_JSON
def pause(*, name: str, as_json: bool) -> None:
    """Deliver nothing more to a sink; events are kept meanwhile."""
    changed = administer(lambda admin: admin.pause(name))
    if as_json:
        print_json({"sink": name, "paused": True, "changed": changed})
    else:
        was = "is paused" if changed else "was paused already"
        echo(f"Sink {name} {was}; resume it with: livewell outbox resume {name}")


@outbox.command("resume")
@SINK_NAME
@AS_JSON
def resume(*, name: str, as_json: bool) -> None:
    """Deliver to a sink again."""
    changed = administer(lambda admin: admin.resume(name))
    if as_json:
        print_json({"sink": name, "paused": False, "changed": changed})
    else:
        echo(f"Sink {name} {'goes on' if changed else 'was not paused'}.")


@outbox.group("events")
def events() -> None:
    """Look at one event."""


@events.command("show")
@EVENT
@REVEAL
@AS_JSON
def show(*, event_id: str, reveal: bool, as_json: bool) -> None:
    """Show one event with its payload, and how far it is at each sink."""

    async def fetch(app: Livewell) -> tuple[dict[str, Any], datetime]:
        return await app.outbox.admin.event(event_id), await database_now(app)

    record, now = with_app(fetch)
    print_event(record, now, as_json=as_json, reveal=reveal)


def print_event(record: dict[str, Any], now: datetime, *, as_json: bool, reveal: bool) -> None:
    """Everything known; secrets in the payload are masked unless asked for."""
    payload = json.loads(record["payload"])
    if as_json:
        shown = {name: value for name, value in record.items() if name != "payload"}
        print_json(shown, as_is={"payload": payload if reveal else hide(payload)})
        return
    facts = {name: record[name] for name in ("id", "topic", "tenant", "key", "trace") if record[name]}
    print_facts({**facts, "emitted": age(record["created_at"], now)})
    echo("")
    columns = [Column("sink"), Column("state"), Column("at"), Column("relay"), Column("attempts", number=True)]
    columns += [Column("behind"), Column("again"), Column("reason"), Column("detail", elastic=True)]
    print_table(columns, (_state_cells(row, now) for row in record["sinks"]), empty="No sink is declared.")
    echo("\npayload")
    echo(escaped(record["payload"] if reveal else json.dumps(hide(payload), ensure_ascii=False, indent=2)))


def administer(act: Callable[[OutboxAdmin], Awaitable[T]]) -> T:
    """Run one act on the configured database."""
    return with_app(lambda app: act(app.outbox.admin))


def _block_cells(row: dict[str, Any], now: datetime) -> list[str]:
    return [
        row["sink"],
        row["event_id"],
        row["state"],
        row["tenant"] or "",
        "" if row["key"] is None else row["key"],
        f"{row['aside']:,}{'+' if row['aside_is_more'] else ''}",
        age(row["since"], now),
        age(row["retry_at"], now),
        short(row["reason"]),
    ]


def _state_cells(row: dict[str, Any], now: datetime) -> list[str]:
    return [
        row["sink"],
        row["state"],
        age(row["at"], now),
        row["relay_name"] or number(row["relay"]),
        number(row["attempt"]),
        row["behind"] or "",
        age(row["retry_at"], now),
        row["reason"] or "",
        short(row["detail"]),
    ]
