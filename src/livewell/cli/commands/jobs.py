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
from livewell.queue.job_filter import STATES, JobFilter
from livewell.words import age

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.queue.admin import JobPage, QueueAdmin

IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True, type=JobId())
LOOKS = 50  # of 20,000 jobs each
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
@click.option("--task", metavar="NAME", help="Only this task.")
@click.option("--state", type=click.Choice(STATES), help="Only this state; without it all that have not ended.")
@click.option("--group", metavar="GROUP", help="Only this group.")
@click.option("--key", metavar="KEY", help="Only this unique key.")
@click.option("--batch", type=JobId(), metavar="ID", help="Only this batch.")
@click.option("--since", metavar="WHEN", help="Made since then: an age such as 2h, or a time in UTC.")
@click.option("--until", metavar="WHEN", help="Made before then.")
@click.option("--newest", is_flag=True, help="The newest first.")
@LIMIT
@AFTER
@AS_JSON
def list_jobs(*, newest: bool, limit: int, after: int, as_json: bool, **parts: Any) -> None:
    """List jobs by id: those that wait or run, or with --state those that ended."""
    wanted = JobFilter(**parts)

    async def fetch(app: Livewell) -> tuple[JobPage, datetime]:
        page = await app.admin.find(wanted, after=after, newest=newest, limit=limit, looks=LOOKS)
        return page, await database_now(app)

    page, now = with_app(fetch)
    if as_json:
        for row in page.rows:
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
        Column("ended"),
        Column("progress", number=True),
        Column("worker", elastic=True),
        Column("last error", elastic=True),
    ]
    nothing = _nothing(wanted, after) if page.next is None else "No job matches so far."
    print_table(columns, (_cells(row, now) for row in page.rows), empty=nothing)
    if len(page.rows) < limit and page.next is not None:
        echo(f"\n{page.looked:,} jobs were looked at; go on with: --after {page.next}")
        return
    say_more(page.rows, limit, place_by_id)


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
    started = row["state"] == "running" or row["run_at"] is None
    of_attempts = "" if row["max_attempts"] is None else f"/{row['max_attempts']}"
    return [
        str(row["id"]),
        row["queue"],
        row["task"],
        row["state"],
        f"{row['attempt']}{of_attempts}" + (f" +{row['lost']} lost" if row["lost"] else ""),
        age(row["created_at"], now),
        age(row["started_at"] if started else row["run_at"], now),
        age(row["finished_at"], now),
        f"{row['progress']} %" if row["state"] == "running" and row["progress"] else "",
        row["worker"] or "",
        short(row["last_error"]),
    ]


def _nothing(wanted: JobFilter, after: int) -> str:
    what = f"{wanted.state} jobs" if wanted.state else "live jobs"
    where = f" in queue {wanted.queue}" if wanted.queue else ""
    others = any((wanted.task, wanted.group, wanted.key, wanted.batch, wanted.since, wanted.until))
    return f"There are no {what}{where}{' that match' if others else ''}{f' after id {after}' if after else ''}."
