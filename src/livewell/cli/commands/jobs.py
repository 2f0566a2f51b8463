"""`livewell jobs`: look at jobs, cancel them, run them now."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import administer, database_now, with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.output import (
    AFTER,
    AS_JSON,
    LIMIT,
    Column,
    JobId,
    place_by_id,
    print_json,
    print_table,
    say_more,
    short,
)
from livewell.cli.record import REVEAL, print_record
from livewell.cli.terminal import echo
from livewell.words import age

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.queue.admin import QueueAdmin

IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True, type=JobId())
ID = click.argument("job_id", metavar="ID", type=JobId())

_CANCELLED = {
    "cancelled": "cancelled; it was not running",
    "requested": "running: its worker was asked to stop it",
    "finished": "too late, it has ended; see: livewell jobs show {id}",
    "unknown": "there is no such job",
}


@group("jobs")
def jobs() -> None:
    """List jobs, show one, ask why it waits, cancel or run it now."""


@jobs.command("list")
@click.option("--queue", metavar="NAME", help="Only this queue.")
@click.option("--state", type=click.Choice(["delayed", "held", "ready", "running"]), help="Only this state.")
@LIMIT
@AFTER
@AS_JSON
def list_jobs(*, queue: str | None, state: str | None, limit: int, after: int, as_json: bool) -> None:
    """List live jobs by id: those that wait or run."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        rows = await app.admin.jobs(queue=queue, state=state, after=after, limit=limit)
        return rows, await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [
        Column("id", number=True),
        Column("queue"),
        Column("task", elastic=True),
        Column("state"),
        Column("attempt", number=True),
    ]
    columns += [
        Column("created"),
        Column("due/started"),
        Column("progress", number=True),
        Column("worker", elastic=True),
        Column("last error", elastic=True),
    ]
    print_table(columns, (_cells(row, now) for row in rows), empty=_nothing(queue, state, after))
    say_more(rows, limit, place_by_id)


@jobs.command("show")
@ID
@REVEAL
@AS_JSON
def show(*, job_id: int, reveal: bool, as_json: bool) -> None:
    """Show everything about one job, wherever it is."""

    async def fetch(app: Livewell) -> tuple[dict[str, Any], datetime]:
        return await app.admin.job(job_id), await database_now(app)

    record, now = with_app(fetch)
    print_record(record, now, as_json=as_json, reveal=reveal)


@jobs.command("why")
@ID
@AS_JSON
@click.pass_context
def why(ctx: click.Context, *, job_id: int, as_json: bool) -> None:
    """Say why a job is not running.

    Exit 1 when there is no such job.
    """
    answer = administer(lambda admin: admin.why(job_id))
    if as_json:
        print_json({**asdict(answer), "words": answer.words})
    else:
        echo(f"job {job_id}: {answer.words}")
    if answer.reason == "unknown":
        ctx.exit(PROBLEM)


@jobs.command("cancel")
@IDS
@AS_JSON
@click.pass_context
def cancel(ctx: click.Context, *, ids: tuple[int, ...], as_json: bool) -> None:
    """Cancel jobs: waiting ones at once, running ones by asking.

    Exit 1 when one of them could not be cancelled.
    """

    async def act(admin: QueueAdmin) -> list[str]:
        return [(await admin.cancel(job_id)).value for job_id in ids]

    answers = administer(act)
    for job_id, answer in zip(ids, answers, strict=True):
        if as_json:
            print_json({"id": job_id, "answer": answer})
        else:
            echo(f"job {job_id}: {_CANCELLED[answer].format(id=job_id)}")
    if {"finished", "unknown"} & set(answers):
        ctx.exit(PROBLEM)


@jobs.command("retry")
@IDS
@AS_JSON
@click.pass_context
def retry(ctx: click.Context, *, ids: tuple[int, ...], as_json: bool) -> None:
    """Run delayed jobs and dead letters now.

    Exit 1 when one of them is neither.
    """
    from livewell.errors import JobNotFound  # noqa: PLC0415 - heavy

    async def act(admin: QueueAdmin) -> list[str]:
        answers = []
        for job_id in ids:
            try:
                answers.append("ready" if await admin.retry(job_id) else (await admin.job(job_id))["state"])
            except JobNotFound:
                answers.append("unknown")
        return answers

    answers = administer(act)
    for job_id, answer in zip(ids, answers, strict=True):
        if as_json:
            print_json({"id": job_id, "answer": answer})
        else:
            echo(f"job {job_id}: {_retried(answer)}")
    if any(answer not in ("ready", "running") for answer in answers):
        ctx.exit(PROBLEM)


def _retried(answer: str) -> str:
    if answer == "ready":
        return "will run as soon as a worker is free"
    if answer == "failed":
        return "still a dead letter: another live job has its unique key"
    return (
        "there is no such job"
        if answer == "unknown"
        else f"is {answer}; only delayed jobs and dead letters can be retried"
    )


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    started = row["state"] == "running"
    return [
        str(row["id"]),
        row["queue"],
        row["task"],
        row["state"],
        f"{row['attempt']}/{row['max_attempts']}" + (f" +{row['lost']} lost" if row["lost"] else ""),
        age(row["created_at"], now),
        age(row["started_at"] if started else row["run_at"], now),
        f"{row['progress']} %" if started and row["progress"] else "",
        row["worker"] or "",
        short(row["last_error"]),
    ]


def _nothing(queue: str | None, state: str | None, after: int) -> str:
    what = f"{state} jobs" if state else "live jobs"
    where = f" in queue {queue}" if queue else ""
    return f"There are no {what}{where}{f' after id {after}' if after else ''}."
