"""`livewell alerts`: what is wrong now and was, who was told, silences, and channels."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import (
    AS_JSON,
    LIMIT,
    Column,
    place_by_id,
    print_facts,
    print_json,
    print_table,
    say_more,
    say_next,
)
from livewell.cli.terminal import echo
from livewell.duration import seconds
from livewell.words import age, number, span

if TYPE_CHECKING:
    from livewell.app import Livewell


ID = click.IntRange(1, 2**63 - 1)
AFTER = click.option(
    "--after", type=click.IntRange(0, 2**63 - 1), default=0, metavar="ID", help="Go on after this id: the next page."
)


@group("alerts")
def alerts() -> None:
    """List alerts, show who was told, silence; list, test and enable channels."""


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
            "silenced": f"ends {age(record['silenced_until'], now)}" if record["silenced_until"] else "no",
            "what to do": f"livewell docs operations/alerts/{record['rule']}",
        }
    )
    for firing in record["firings_shown"]:
        ended = f", armed again {age(firing['ended_at'], now)}" if firing["ended_at"] else ""
        echo(f"\nfired {age(firing['fired_at'], now)}{ended}")
        for line in _told(firing["told"], now):
            echo(f"  {line}")


@alerts.command("past")
@LIMIT
@click.option("--before", type=ID, default=None, metavar="ID", help="Go on before this firing: the next page.")
@AS_JSON
def past(*, limit: int, before: int | None, as_json: bool) -> None:
    """List what was wrong and is over, the newest first, with who was told."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.alerts.past(before=before, limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("firing", number=True), Column("level"), Column("rule"), Column("fired"), Column("lasted")]
    columns += [Column("told"), Column("summary", elastic=True)]
    print_table(columns, (_past_cells(row, now) for row in rows), empty="Nothing that was wrong is over.")
    if len(rows) >= limit:
        say_next(f"The newest {limit:,} are shown", "--before", rows[-1]["id"])


@alerts.command("silence")
@click.argument("rule", metavar="RULE")
@click.option("--for", "length", required=True, metavar="TIME", help='Such as "30m", "2h", "7d", which is the most.')
@click.option("--subject", default="", metavar="TEXT", help="Only of this subject; by default of all of the rule.")
@AS_JSON
def silence(*, rule: str, length: str, subject: str, as_json: bool) -> None:
    """Tell nobody of a rule's alerts for a while.

    They still fire and are listed. What still fires at the end is told then.
    """

    async def act(app: Livewell) -> tuple[datetime, datetime]:
        until = await app.alerts.silence(rule, subject=subject, seconds=seconds(length, "--for"))
        return until, await database_now(app)

    until, now = with_app(act)
    if as_json:
        print_json({"rule": rule, "subject": subject, "until": until})
    else:
        echo(f"Nobody is told of {_what(rule, subject)} until {until:%Y-%m-%d %H:%M:%S %Z} ({age(until, now)}).")


@alerts.command("unsilence")
@click.argument("rule", metavar="RULE")
@click.option("--subject", default="", metavar="TEXT", help="The subject, if it was silenced alone.")
@AS_JSON
def unsilence(*, rule: str, subject: str, as_json: bool) -> None:
    """End a silence now."""

    async def act(app: Livewell) -> None:
        await app.alerts.unsilence(rule, subject=subject)

    with_app(act)
    if as_json:
        print_json({"rule": rule, "subject": subject, "until": None})
    else:
        echo(f"People are told of {_what(rule, subject)} again.")


@alerts.command("silences")
@AS_JSON
def silences(*, as_json: bool) -> None:
    """List of what nobody is told, until when, and by whom."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.alerts.silences(), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("rule"), Column("subject", elastic=True), Column("ends"), Column("wrong now", number=True)]
    print_table(
        [*columns, Column("silenced by", elastic=True)],
        (
            [row["rule"], row["subject"] or "all", age(row["until"], now), number(row["alerts"]), row["silenced_by"]]
            for row in rows
        ),
        empty="Nothing is silenced.",
    )


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
    columns = [Column("channel"), Column("kind"), Column("address"), Column("levels"), Column("last test")]
    print_table(
        [*columns, Column("state")],
        (
            [
                row["name"],
                row["kind"],
                row["source"],
                f"P0 to {row['level']}",
                f"{row['test_state']} {age(row['tested_at'], now)}" if row["tested_at"] else "",
                _channel_state(row, now),
            ]
            for row in rows
        ),
        empty="No channel has been used yet: name them in alert_channels, see livewell docs howto/alerts.",
    )


@alerts.command("test")
@click.argument("channel", metavar="CHANNEL")
@AS_JSON
def test(*, channel: str, as_json: bool) -> None:
    """Send a test message through a channel, on the way that every alert goes."""

    async def act(app: Livewell) -> str:
        return await app.alerts.test(channel)

    answer = with_app(act)
    if as_json:
        print_json({"channel": channel, "answer": answer})
        return
    said = {
        "asked": f"A test of channel {channel} was asked for",
        "nobody": f"A test of channel {channel} was asked for, but no worker was here for a minute; one that starts "
        "sends it",
        "waiting": f"The last test of channel {channel} is not over yet",
    }[answer]
    echo(f"{said}; see how it ends with: livewell alerts channels")


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
    silence = f", silenced, ends {age(row['silenced_until'], now)}" if row["silenced_until"] else ""
    fired, times = age(row["fired_at"], now), number(row["firings"])
    state = row["state"] + silence
    return [str(row["id"]), row["level"], row["rule"], state, fired, times, _told_words(row), row["summary"]]


def _past_cells(row: dict[str, Any], now: datetime) -> list[str]:
    lasted = span((row["ended_at"] - row["fired_at"]).total_seconds())
    fired = age(row["fired_at"], now)
    return [str(row["id"]), row["level"], row["rule"], fired, lasted, _told_words(row), row["summary"]]


def _told_words(row: dict[str, Any]) -> str:
    words = ("sent", "waiting", "refused", "unknown", "silenced")
    return ", ".join(f"{row[word]} {word}" for word in words if row[word]) or "nobody"


def _what(rule: str, subject: str) -> str:
    return f"{rule}, {subject}" if subject else rule


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
