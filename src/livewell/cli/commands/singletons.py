"""`livewell singletons`: who does the work that only one may do; take it from a dead holder."""

from __future__ import annotations

from typing import Any

import click

from livewell.cli.administration import with_app
from livewell.cli.command import PROBLEM, group
from livewell.cli.commands.upstreams import mender
from livewell.cli.output import AS_JSON, Column, print_json, print_table
from livewell.cli.terminal import echo
from livewell.words import span


@group("singletons")
def singletons() -> None:
    """List who holds which singleton; take one from a dead holder."""


@singletons.command("list")
@AS_JSON
def list_singletons(*, as_json: bool) -> None:
    """List every singleton: its holder, for how long, and when it was last renewed."""
    rows = with_app(lambda app: mender(app).singletons())
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("singleton"), Column("holder", elastic=True), Column("state"), Column("held", number=True)]
    columns += [Column("renewed", number=True)]
    print_table(columns, map(_cells, rows), empty="Nothing was ever held: singletons appear when a worker starts.")


@singletons.command("take")
@click.argument("name", metavar="NAME")
@click.option("--force", is_flag=True, help="Also from a holder that lives: the run that it is in is fenced, and lost.")
@AS_JSON
@click.pass_context
def take(ctx: click.Context, *, name: str, force: bool, as_json: bool) -> None:
    """End the term of a dead holder, so that another can begin.

    Exits with 1 when the holder lives, and nothing was done.
    """
    if force:
        echo(f"Warning: whatever {name} is doing now is cut off, and what it has not stored is lost.", err=True)
    answer = with_app(lambda app: mender(app).take(name, force=force))
    if as_json:
        print_json({"singleton": name, "answer": answer})
    else:
        echo(_WORDS[answer].format(name=name))
    if answer == "alive":
        ctx.exit(PROBLEM)


_WORDS = {
    "taken": "{name} is free: the next worker that wants it has it.",
    "free": "{name} is held by nobody.",
    "alive": "The holder of {name} lives, and keeps it. Stop that process; or cut off its run with: livewell "
    "singletons take {name} --force",
}


def _cells(row: dict[str, Any]) -> list[str]:
    state = "held" if row["held"] else "free" if row["released"] else "expired"
    return [row["name"], row["holder"], state, span(row["held_seconds"]), span(row["renewed_seconds"])]
