"""`livewell alerts`: what is wrong now, who was told, and channels."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, LIMIT, Column, place_by_id, print_facts, print_json, print_table, say_more
from livewell.cli.terminal import echo
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell


ID = click.IntRange(1, 2**63 - 1)
AFTER = click.option(
    "--after", type=click.IntRange(0, 2**63 - 1), default=0, metavar="ID", help="Go on after this id: the next page."
)


@group("alerts")
def alerts() -> None:
    """List alerts, show who was told, list and enable channels."""


@alerts.command("list")
@click.option(
    "--state",
    type=click.Choice(["armed", "fired", "cooling", "all"]),
    help="Only this state; by default fired and cooling.",
)
@LIMIT
@AFTER
@AS_JSON
def list_alerts(*, state: str | None, limit: int, after: int, as_json: bool) -> None:
    """List what is wrong now."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.alerts.alerts(state=state, after=after, limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [
        Column("id", number=True),
        Column("level"),
        Column("rule"),
        Column("state"),
        Column("fired"),
        Column("times", number=True),
    ]
    columns += [Column("told"), Column("summary", elastic=True)]
    print_table(columns, (_cells(row, now) for row in rows), empty="Nothing is wrong: no alert is fired.")
    say_more(rows, limit, place_by_id)


@alerts.command("show")
@click.argument("alert_id", metavar="ID", type=ID)
@AS_JSON
def show(*, alert_id: int, as_json: bool) -> None:
    """Show one alert: its firings, and every attempt to tell somebody."""

    async def fetch(app: Livewell) -> tuple[dict[str, Any], datetime]:
        return await app.alerts.alert(alert_id), await database_now(app)

    record, now = with_app(fetch)
    if as_json:
        print_json(record)
        return
    print_facts(
        {
            "rule": record["rule"],
            "subject": record["subject"],
            "level": record["level"],
            "state": record["state"],
            "summary": record["summary"],
            "fired": f"{age(record['fired_at'], now)}; {number(record['firings'])} times in all",
            "what to do": f"livewell docs operations/alerts/{record['rule']}",
        }
    )
    for firing in record["firings_shown"]:
        ended = f", armed again {age(firing['ended_at'], now)}" if firing["ended_at"] else ""
        echo(f"\nfired {age(firing['fired_at'], now)}{ended}")
        for line in _told(firing["told"], now):
            echo(f"  {line}")


@alerts.command("channels")
@AS_JSON
def channels(*, as_json: bool) -> None:
    """List whom alerts are sent to, and which are quiet or disabled."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.alerts.channels(), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("channel"), Column("kind"), Column("address"), Column("levels"), Column("state")]
    print_table(
        columns,
        ([row["name"], row["kind"], row["source"], f"P0 to {row['level']}", _channel_state(row, now)] for row in rows),
        empty="No channel has been used yet: name them in alert_channels, see livewell docs howto/alerts.",
    )


@alerts.command("enable")
@click.argument("channel", metavar="CHANNEL")
@AS_JSON
def enable(*, channel: str, as_json: bool) -> None:
    """Let a channel send again that was disabled (its receiver answered 410), or is quiet."""

    async def act(app: Livewell) -> None:
        await app.alerts.enable(channel)

    with_app(act)
    print_json({"channel": channel, "enabled": True}) if as_json else echo(f"Channel {channel} is enabled.")


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    told = ", ".join(f"{row[word]} {word}" for word in ("sent", "waiting", "refused", "unknown") if row[word])
    fired, times = age(row["fired_at"], now), number(row["firings"])
    return [str(row["id"]), row["level"], row["rule"], row["state"], fired, times, told or "nobody", row["summary"]]


def _channel_state(row: dict[str, Any], now: datetime) -> str:
    if row["disabled_at"] is not None:
        return (
            f"disabled {age(row['disabled_at'], now)}: its receiver was gone; enable it with: livewell alerts "
            f"enable {row['name']}"
        )
    quiet = row["quiet_until"]
    return f"quiet, goes on {age(quiet, now)}" if quiet is not None and quiet > now else "open"


def _told(told: list[dict[str, Any]], now: datetime) -> list[str]:
    lines = []
    for one in told:
        later = f", next try {age(one['next_at'], now)}" if one["next_at"] else ""
        lines.append(f"{one['channel']}: {one['state']}{later}")
        lines += [
            f"  {age(t['attempt_at'], now)}: {t['outcome']} {t['status'] or ''} {t['detail'] or ''}".rstrip()
            for t in one["tried"]
        ]
    return lines or ["nobody was told: no channel takes this level"]
