"""`livewell queues`: what waits, who works, pause and resume."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import administer, database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, Column, print_json, print_table
from livewell.cli.terminal import echo
from livewell.words import age, number, span

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.queue.admin import QueueAdmin

NAME = click.argument("name", metavar="QUEUE")


@group("queues")
def queues() -> None:
    """List queues and workers, pause and resume."""


@queues.command("list")
@AS_JSON
def list_queues(*, as_json: bool) -> None:
    """List every queue: what waits, runs and died, and how fast."""
    rows = administer(lambda admin: admin.queues())
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("queue"), Column("state")]
    columns += [
        Column(name, number=True)
        for name in ("ready", "delayed", "held", "running", "dead", "oldest", "workers", "done/min")
    ]
    print_table(
        columns,
        map(_cells, rows),
        empty="There are no queues yet: a queue appears when an app that names it is opened.",
    )


@queues.command("workers")
@AS_JSON
def workers(*, as_json: bool) -> None:
    """List every worker, its lease and how many jobs it holds."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.admin.workers(), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [
        Column("id", number=True),
        Column("name", elastic=True),
        Column("version"),
        Column("queues", elastic=True),
        Column("slots", number=True),
    ]
    columns += [Column("holds", number=True), Column("started"), Column("renewed"), Column("lease")]
    print_table(
        columns,
        (_worker_cells(row, now) for row in rows),
        empty="No worker is running. Start one with: livewell worker module:attribute",
    )


@queues.command("limiters")
@AS_JSON
def limiters(*, as_json: bool) -> None:
    """List every limiter by credential: what is used, and what it waits for."""
    rows = administer(lambda admin: admin.limiters())
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("limiter"), Column("credential"), Column("rate", number=True), Column("budget", number=True)]
    columns += [Column("calls", number=True), Column("breaker"), Column("now"), Column("queues", elastic=True)]
    print_table(
        columns, map(_limiter_cells, rows), empty="There are no limiters: an app declares them with app.limiter()."
    )


@queues.command("pause")
@NAME
@AS_JSON
def pause(*, name: str, as_json: bool) -> None:
    """Let no worker claim from a queue; what runs may finish."""
    _set_paused(name, paused=True)
    print_json({"queue": name, "paused": True}) if as_json else echo(
        f"Queue {name} is paused; resume it with: livewell queues resume {name}"
    )


@queues.command("resume")
@NAME
@AS_JSON
def resume(*, name: str, as_json: bool) -> None:
    """Let workers claim from a paused queue again."""
    _set_paused(name, paused=False)
    print_json({"queue": name, "paused": False}) if as_json else echo(f"Queue {name} is open.")


def _set_paused(name: str, *, paused: bool) -> None:
    async def act(admin: QueueAdmin) -> None:
        await admin.pause(name, paused=paused)

    administer(act)


def _cells(row: dict[str, Any]) -> list[str]:
    counts = [number(row[name]) for name in ("ready", "delayed", "held", "running", "dead")]
    state = "paused" if row["paused_at"] else "open"
    overdue = f", {row['overdue_delayed']} overdue" if row["overdue_delayed"] else ""
    return [
        row["name"],
        state + overdue,
        *counts,
        span(row["oldest_ready_seconds"]),
        number(row["workers"]),
        number(row["done_per_minute"]),
    ]


def _limiter_cells(row: dict[str, Any]) -> list[str]:
    rate = "" if row["rate_calls"] is None else f"{row['spent']:,}/{row['rate_calls']:,} in {span(row['rate_seconds'])}"
    taken = row["used"] + row["reserved"]
    budget = (
        ""
        if row["budget_units"] is None
        else f"{taken / row['budget_units']:.1%} of {row['budget_units']:,} {row['budget_unit']}"
    )
    running = number(row["running"]) + (f" of {row['concurrency']:,}" if row["concurrency"] else "")
    wait = f" for {span(row['wait_seconds'])}" if row["wait_seconds"] else ""
    now = (
        "retired"
        if not row["active"]
        else "calls allowed"
        if row["calls_now"]
        else f"calls stopped: {row['reason']}{wait}"
    )
    return [
        row["name"],
        row["credential"],
        rate,
        budget,
        running,
        row["breaker"].replace("_", " "),
        now,
        ", ".join(row["queues"]),
    ]


def _worker_cells(row: dict[str, Any], now: datetime) -> list[str]:
    left = row["lease_left_seconds"]
    lease = f"{span(left)} left" if left > 0 else "expired"
    return [
        str(row["id"]),
        row["name"],
        row["version"],
        ", ".join(row["queues"]),
        number(row["slots"]),
        number(row["holds"]),
        age(row["started_at"], now),
        f"{span(row['renewed_seconds_ago'])} ago",
        lease,
    ]
