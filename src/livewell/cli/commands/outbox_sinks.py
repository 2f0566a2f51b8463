"""`livewell outbox sinks` and `livewell outbox topics`: where events go, and which kinds there are."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, Column, print_facts, print_json, print_table, say_more, short
from livewell.cli.terminal import echo
from livewell.words import age, number, span

if TYPE_CHECKING:
    from livewell.app import Livewell

SINK_NAME = click.argument("name", metavar="SINK")
SINK_COLUMNS = [
    Column("sink"),
    Column("kind"),
    Column("waiting", number=True),
    Column("oldest"),
    Column("blocked", number=True),
    Column("parked", number=True),
    Column("dead", number=True),
    Column("relays", number=True),
    Column("shards", number=True),
    Column("5 min", number=True),
    Column("note", elastic=True),
]
_POLICY = ("kind", "topics", "ordered", "attempts", "batch_max", "deadline_seconds")


@group("sinks")
def sinks() -> None:
    """List sinks, show one, declare one for programs elsewhere, remove one."""


@sinks.command("list")
@AS_JSON
def list_sinks(*, as_json: bool) -> None:
    """List every sink: what waits for it, what blocks it, and who delivers."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.outbox.admin.sinks(), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    cells = (sink_cells(row, now) for row in rows)
    print_table(SINK_COLUMNS, cells, empty="No sink is declared; see: livewell docs howto/outbox_operate")


@sinks.command("show")
@SINK_NAME
@AS_JSON
def show(*, name: str, as_json: bool) -> None:
    """Show one sink: its policy, the tenants that have waited longest, and when each has its turn."""

    async def fetch(app: Livewell) -> tuple[dict[str, Any], datetime]:
        return await app.outbox.admin.sink(name), await database_now(app)

    record, now = with_app(fetch)
    if as_json:
        print_json(record)
        return
    print_facts({key: ", ".join(record[key]) if key == "topics" else record[key] for key in _POLICY})
    echo("")
    print_table(SINK_COLUMNS, [sink_cells(record, now)], empty="")
    echo("\nwho has waited longest")
    columns = [Column("tenant"), Column("event"), Column("emitted"), Column("ready", number=True), Column("note")]
    print_table(columns, (_lag_cells(row, now) for row in record["lag"]), empty="Nothing waits.")
    echo("\nwhen every tenant has had its turn")
    columns = [Column("relay"), Column("shards", number=True), Column("tenants", number=True)]
    columns += [Column("places", number=True), Column("claims", number=True), Column("takes")]
    print_table(columns, map(_share_cells, record["fair_share"]), empty="No shard of it exists.")


@sinks.command("declare")
@SINK_NAME
@click.option("--outside", is_flag=True, required=True, help="Programs elsewhere claim its events, with outbox_claim.")
@click.option("--topics", default="*", show_default=True, metavar="A,B.*", help="Names, beginnings with a star, or *.")
@click.option("--unordered", is_flag=True, help="No event waits for another of its key.")
@click.option("--attempts", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N")
@AS_JSON
def declare(*, name: str, outside: bool, topics: str, unordered: bool, attempts: int, as_json: bool) -> None:  # noqa: ARG001 - the flag says what it is
    """Declare a sink whose events programs elsewhere claim.

    Sinks that Livewell delivers to are declared by the app, or in the setting sinks.
    """
    from livewell.outbox.definition import SinkPolicy, define_sink  # noqa: PLC0415 - heavy

    patterns = [one.strip() for one in topics.split(",")]
    define_sink(name, "outside", patterns, SinkPolicy(ordered=not unordered, attempts=attempts), None)
    with_app(lambda app: app.outbox.admin.declare_outside(name, patterns, ordered=not unordered, attempts=attempts))
    if as_json:
        print_json({"sink": name, "topics": patterns, "outside": True})
    else:
        echo(f"Sink {name} is declared; programs claim its events with livewell.outbox_claim(…, '{name}').")


@sinks.command("remove")
@SINK_NAME
@click.option("--force", is_flag=True, help="Also what waits for it and its dead letters, which are gone for good.")
@AS_JSON
def remove(*, name: str, force: bool, as_json: bool) -> None:
    """Forget a sink that is in nobody's code any more; refused while events wait for it."""
    with_app(lambda app: app.outbox.admin.remove_sink(name, force=force))
    print_json({"sink": name, "removed": True}) if as_json else echo(f"Sink {name} is removed.")


@group("topics")
def topics() -> None:
    """List topics; declare one."""


@topics.command("list")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=50, show_default=True, metavar="N", help="At most this many."
)
@click.option("--after", default="", metavar="NAME", help="Go on after this topic: the next page.")
@AS_JSON
def list_topics(*, limit: int, after: str, as_json: bool) -> None:
    """List the kinds of events, and the sinks that take each."""
    rows = with_app(lambda app: app.outbox.admin.topics(after=after, limit=limit))
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("topic"), Column("on dead"), Column("payload bytes", number=True), Column("sinks", elastic=True)]
    cells = ([row["name"], row["on_dead"], number(row["payload_bytes_max"]), ", ".join(row["sinks"])] for row in rows)
    print_table(columns, cells, empty="No topic is declared; see: livewell docs howto/outbox_operate")
    say_more(rows, limit, lambda row: row["name"])


@topics.command("declare")
@click.argument("name", metavar="TOPIC")
@click.option("--on-dead", type=click.Choice(["continue", "park"]), help="What a dead letter does to its key.")
@click.option("--payload-bytes-max", type=click.IntRange(1, 1_048_576), metavar="N")
@AS_JSON
def declare_topic(
    *, name: str, on_dead: Literal["continue", "park"] | None, payload_bytes_max: int | None, as_json: bool
) -> None:
    """Declare a kind of event, or change it; what is not given stays."""
    changed = with_app(
        lambda app: app.outbox.admin.declare_topic(name, on_dead=on_dead, payload_bytes_max=payload_bytes_max)
    )
    if as_json:
        print_json({"topic": name, "changed": changed})
    else:
        echo(f"Topic {name} {'is declared' if changed else 'was so already'}.")


def sink_cells(row: dict[str, Any], now: datetime) -> list[str]:
    """One line of a table of sinks."""
    return [
        row["name"],
        row["kind"],
        _count(row["waiting"], is_more=row["waiting_is_more"]),
        age(row["oldest_at"], now),
        _count(row["blocked"], is_more=row["blocks_is_more"]),
        _count(row["parked"], is_more=row["blocks_is_more"]),
        _count(row["dead"], is_more=row["dead_is_more"]),
        number(row["relays"]),
        number(row["shards"]),
        number(row["delivered"]),
        _note(row, now),
    ]


def _note(row: dict[str, Any], now: datetime) -> str:
    if row["paused_at"]:
        return f"paused {age(row['paused_at'], now)}"
    if row["away_since"]:
        return f"away {age(row['away_since'], now)}: {short(row['away_reason'])}"
    if not row["relays"]:
        return "nobody claims" if row["outside"] else "no relay"
    return f"{row['replays']} replays" if row["replays"] else ""


def _count(value: int, *, is_more: bool) -> str:
    return f"{value:,}{'+' if is_more else ''}"


def _lag_cells(row: dict[str, Any], now: datetime) -> list[str]:
    tenant = "(replays)" if row["is_replay"] else row["tenant"] or "(no tenant)"
    waiting = _count(row["waiting"], is_more=row["waiting_is_more"])
    return [
        tenant,
        row["oldest_id"],
        age(row["oldest_at"], now),
        waiting,
        "its key is blocked" if row["is_blocked"] else "",
    ]


def _share_cells(row: dict[str, Any]) -> list[str]:
    places = _count(row["places"], is_more=row["places_is_more"])
    relay = "nobody" if row["relay"] is None else f"{row['name']} ({row['relay']})"
    return [
        relay,
        number(row["shards"]),
        number(row["tenants"]),
        places,
        number(row["claims"]),
        span(row["wait_seconds"]),
    ]
