"""`livewell dead`: look at dead letters, mend them, give them another life."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import administer, database_now, with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.commands.jobs import ID
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
from livewell.cli.terminal import console, echo
from livewell.words import age, number

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.queue.admin import QueueAdmin

QUEUE = click.option("--queue", metavar="NAME", help="Only this queue.")
TASK = click.option("--task", metavar="NAME", help="Only this task.")

_PAGE = 500
_FILE_BYTES_MAX = 1_048_576


@group("dead")
def dead() -> None:
    """List dead letters, show, edit, redrive and discard them."""


@dead.command("list")
@QUEUE
@TASK
@LIMIT
@AFTER
@AS_JSON
def list_dead(*, queue: str | None, task: str | None, limit: int, after: int, as_json: bool) -> None:
    """List jobs that failed for good, by id."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await app.admin.dead(queue=queue, task=task, after=after, limit=limit), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [
        Column("id", number=True),
        Column("queue"),
        Column("task", elastic=True),
        Column("reason"),
        Column("attempts", number=True),
    ]
    columns += [Column("lost", number=True), Column("died"), Column("error", elastic=True)]
    print_table(
        columns,
        (_cells(row, now) for row in rows),
        empty="There are no dead letters" + _which(queue, task, after) + ".",
    )
    say_more(rows, limit, place_by_id)


@dead.command("show")
@ID
@REVEAL
@AS_JSON
def show(*, job_id: int, reveal: bool, as_json: bool) -> None:
    """Show one dead letter with its error and payload."""

    async def fetch(app: Livewell) -> tuple[dict[str, Any], datetime]:
        return await app.admin.letter(job_id), await database_now(app)

    record, now = with_app(fetch)
    print_record(record, now, as_json=as_json, reveal=reveal)


@dead.command("edit")
@ID
@click.option(
    "--payload",
    required=True,
    metavar="JSON",
    help="The new arguments as a JSON object; @FILE reads a file, - standard input.",
)
@AS_JSON
def edit(*, job_id: int, payload: str, as_json: bool) -> None:
    """Replace the payload of a dead letter, before redriving it."""
    text = _checked(payload)

    async def act(admin: QueueAdmin) -> None:
        await admin.edit(job_id, text)

    administer(act)
    if as_json:
        print_json({"id": job_id, "edited": True})
    else:
        echo(f"Dead letter {job_id} has a new payload; run it with: livewell dead redrive {job_id}")


@dead.command("redrive")
@click.argument("ids", metavar="[ID]...", nargs=-1, type=JobId())
@QUEUE
@TASK
@click.option("--all", "everything", is_flag=True, help="All of them.")
@AS_JSON
@click.pass_context
def redrive(
    ctx: click.Context,
    *,
    ids: tuple[int, ...],
    queue: str | None,
    task: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Give dead letters another life: same id, no attempts used, ready now.

    Say which: ids, or --queue and --task, or --all. Exit 1 when one of them stayed.
    """
    if sum((bool(ids), bool(queue or task), everything)) != 1:
        raise click.UsageError("say which: ids, or --queue and/or --task, or --all", ctx)

    async def act(admin: QueueAdmin) -> tuple[int, int]:
        total = len(set(ids)) if ids else await _total(admin, queue, task)
        pages = _given(ids) if ids else _listed(admin, queue, task)
        return await _redrive(admin, pages, total)

    redriven, kept = administer(act)
    missing = len(set(ids)) - redriven - kept if ids else 0
    if as_json:
        print_json({"redriven": redriven, "kept": kept, "missing": missing})
    else:
        echo(_said(redriven, kept, missing, _which(queue, task, 0)))
    if kept or missing:
        ctx.exit(PROBLEM)


@dead.command("discard")
@click.argument("ids", metavar="[ID]...", nargs=-1, type=JobId())
@QUEUE
@TASK
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--yes", is_flag=True, help="Needed with --queue, --task and --all: they are gone for good.")
@AS_JSON
@click.pass_context
def discard(
    ctx: click.Context,
    *,
    ids: tuple[int, ...],
    queue: str | None,
    task: str | None,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete dead letters for good: nobody can redrive them any more.

    Say which: ids, or --queue and --task, or --all. Exit 1 when one of the ids was not there.
    """
    if sum((bool(ids), bool(queue or task), everything)) != 1:
        raise click.UsageError("say which: ids, or --queue and/or --task, or --all", ctx)
    if not ids and not yes:
        raise click.UsageError("they are gone for good; look with: livewell dead list, then add --yes", ctx)

    async def act(admin: QueueAdmin) -> int:
        pages = _given(ids) if ids else _listed(admin, queue, task)
        return sum([await admin.discard(page) async for page in pages])

    discarded = administer(act)
    missing = len(set(ids)) - discarded if ids else 0
    if as_json:
        print_json({"discarded": discarded, "missing": missing})
    else:
        gone = f"; {missing:,} not found, or being redriven by somebody else" if missing else ""
        echo(f"{discarded:,} dead letter{'s' * (discarded != 1)} discarded{_which(queue, task, 0)}{gone}.")
    if missing:
        ctx.exit(PROBLEM)


async def _redrive(admin: QueueAdmin, pages: AsyncIterator[Sequence[int]], total: int | None) -> tuple[int, int]:
    """Page by page, so that a million letters are not one transaction.

    A bar shows how far, on a terminal.
    """
    from rich.progress import Progress  # noqa: PLC0415 - heavy

    redriven = kept = 0
    out = console(err=True)
    with Progress(console=out, transient=True, disable=not out.is_terminal) as progress:
        bar = progress.add_task("redriving", total=total)
        async for ids in pages:
            went, stayed = await admin.redrive(list(ids), limit=len(ids))
            redriven, kept = redriven + went, kept + stayed
            progress.advance(bar, len(ids))
    return redriven, kept


async def _given(ids: Sequence[int]) -> AsyncIterator[Sequence[int]]:
    wanted = sorted(set(ids))
    for start in range(0, len(wanted), _PAGE):
        yield wanted[start : start + _PAGE]


async def _listed(admin: QueueAdmin, queue: str | None, task: str | None) -> AsyncIterator[Sequence[int]]:
    """By keyset, so that letters which stay are met once, and one that dies again is not redriven again."""
    after = 0
    while rows := await admin.dead(queue=queue, task=task, after=after, limit=_PAGE):
        after = rows[-1]["id"]
        yield [row["id"] for row in rows]


async def _total(admin: QueueAdmin, queue: str | None, task: str | None) -> int | None:
    """How many there are, where that is cheap to know."""
    if task is not None:
        return None
    counts: list[int] = [row["dead"] for row in await admin.queues() if queue in (None, row["name"])]
    return sum(counts)


def _checked(given: str) -> str:
    """The text of a JSON object; it is stored as it is written, so every digit is kept."""
    text = _read(given)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise _wrong(f"a JSON object with the task's arguments is needed, not {_json_name(value)}")
    return text


def _read(given: str) -> str:
    try:
        if given == "-":
            return sys.stdin.read(_FILE_BYTES_MAX)
        if given.startswith("@"):
            with Path(given[1:]).open(encoding="utf-8") as file:
                return file.read(_FILE_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"{given} cannot be read: {error}") from None
    return given


def _wrong(text: str) -> click.BadParameter:
    return click.BadParameter(text, click.get_current_context(), param_hint="--payload")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _json_name(value: object) -> str:
    names: dict[type, str] = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    return [
        str(row["id"]),
        row["queue"],
        row["task"],
        row["reason"],
        number(row["attempt"]),
        number(row["lost"]),
        age(row["died_at"], now),
        short(row["error"]),
    ]


def _which(queue: str | None, task: str | None, after: int) -> str:
    parts = (queue and f" in queue {queue}", task and f" of task {task}", after and f" after id {after}")
    return "".join(part for part in parts if part)


def _said(redriven: int, kept: int, missing: int, which: str) -> str:
    if not (redriven or kept or missing):
        return f"There are no dead letters{which}."
    letters: Callable[[int], str] = lambda n: f"{n:,} dead letter{'s' * (n != 1)}"  # noqa: E731 - used three times, here only
    said = [f"{letters(redriven)} redriven"]
    if kept:
        said.append(f"{letters(kept)} stayed: another live job has their unique key")
    if missing:
        said.append(f"{letters(missing)} not found, or being redriven by somebody else")
    return "; ".join(said) + "."
