"""`livewell schedules`: what runs by the clock, when it is next, whether it is late.

Ask for a run, pause, remove.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, Column, print_json, print_table, short
from livewell.cli.terminal import echo
from livewell.schedule.cron_words import rule_words
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.schedule.admin import ScheduleAdmin

T = TypeVar("T")
NAME = click.argument("name", metavar="NAME")


@group("schedules")
def schedules() -> None:
    """List what runs by the clock; run, pause, resume, remove."""


@schedules.command("list")
@AS_JSON
@click.pass_context
def list_schedules(ctx: click.Context, *, as_json: bool) -> None:
    """List every schedule and every loop: the latest run, the next one, and what is late (then the exit code is 1)."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.schedule_admin.schedules(), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
    else:
        columns = [Column("schedule"), Column("rule", elastic=True), Column("state"), Column("next"), Column("last")]
        columns += [Column("ended"), Column("rows", number=True), Column("note", elastic=True)]
        print_table(
            columns,
            (_cells(row, now) for row in rows),
            empty="Nothing runs by the clock yet: schedules appear when a worker starts. Start one with: "
            "livewell worker module:attribute",
        )
    ctx.exit(1 if any(row["late"] for row in rows) else 0)


@schedules.command("run")
@NAME
@AS_JSON
def run(*, name: str, as_json: bool) -> None:
    """Ask for a run now, beside the slots."""
    answer = act(lambda admin: admin.ask(name))
    if as_json:
        print_json({"schedule": name, "answer": answer})
    elif answer == "asked":
        echo(f"A run of {name} was asked for; see: livewell runs history {name}")
    else:
        echo(
            f"A run of {name} was asked for, but no worker that has its handler was here for a minute; it "
            "begins when one starts."
        )


@schedules.command("pause")
@NAME
@AS_JSON
def pause(*, name: str, as_json: bool) -> None:
    """Begin no more runs; what runs may end, and slots that come are skipped."""
    act(lambda admin: admin.pause(name))
    print_json({"schedule": name, "paused": True}) if as_json else echo(
        f"Schedule {name} is paused; resume it with: livewell schedules resume {name}"
    )


@schedules.command("resume")
@NAME
@AS_JSON
def resume(*, name: str, as_json: bool) -> None:
    """Begin runs again, from the next slot on."""
    act(lambda admin: admin.pause(name, paused=False))
    print_json({"schedule": name, "paused": False}) if as_json else echo(f"Schedule {name} runs again.")


@schedules.command("remove")
@NAME
@AS_JSON
def remove(*, name: str, as_json: bool) -> None:
    """Forget a schedule that is in nobody's code any more; its history stays."""
    act(lambda admin: admin.remove(name))
    print_json({"schedule": name, "removed": True}) if as_json else echo(f"Schedule {name} is removed.")


def act(do: Callable[[ScheduleAdmin], Awaitable[T]]) -> T:
    """Run one act on the configured database."""
    return with_app(lambda app: do(app.schedule_admin))


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    note = row["last_error"] or (row["last_reason"] and f"skipped: {row['last_reason']}") or ""
    if row["state"] == "orphaned":
        note = f"no worker has its handler; gone for good? livewell schedules remove {row['name']}"
    count = row["last_rows"] if row["turns"] is None else row["turns"]
    return [
        row["name"],
        rule_words(row["kind"], row["rule"], row["zone"]),
        f"{row['state']}, LATE" if row["late"] else row["state"],
        age(row["due_at"], now),
        row["last_state"] or "",
        age(row["last_finished_at"], now),
        number(count) + (" turns" if row["turns"] is not None else ""),
        short(note) if row["state"] != "orphaned" else note,
    ]
