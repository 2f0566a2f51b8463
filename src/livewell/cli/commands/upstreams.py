"""`livewell upstreams`: whose calls are stopped and why.

End a silence, probe or close a breaker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import group
from livewell.cli.output import AS_JSON, Column, print_json, print_table
from livewell.cli.terminal import echo
from livewell.words import age

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.operations.mend import Mender

T = TypeVar("T")
NAME = click.argument("name", metavar="UPSTREAM")
CREDENTIAL = click.option(
    "--credential", metavar="NAME", help="Only this one, as `livewell upstreams list` names it; all, if not given."
)

_RESUMED = {
    "resumed": "{name} may be called again.",
    "not_stopped": "{name} was neither paused nor silent. If its breaker is open: livewell upstreams probe {name}",
}
_PROBED = {
    "probing": "The next call to {name} tries whether it is back; see: livewell upstreams list",
    "silent": "{name} asked for silence, and a probe would break it. To end the silence: livewell upstreams "
    "resume {name}",
    "closed": "The breaker of {name} is closed, calls are allowed: there is nothing to probe.",
}
_CLOSED = {
    "closed": "The breaker of {name} is closed, calls are allowed. It opens again if they fail.",
    "was_closed": "The breaker of {name} was closed already.",
}


@group("upstreams")
def upstreams() -> None:
    """List upstreams whose calls are stopped; resume, probe, close."""


@upstreams.command("list")
@AS_JSON
def list_upstreams(*, as_json: bool) -> None:
    """List upstreams and limiters: which may be called, and what stops the others."""

    async def fetch(app: Livewell) -> tuple[list[dict[str, Any]], datetime]:
        return await mender(app).upstreams(), await database_now(app)

    rows, now = with_app(fetch)
    if as_json:
        for row in rows:
            print_json(row)
        return
    columns = [Column("upstream"), Column("credential"), Column("calls"), Column("breaker"), Column("until")]
    columns += [Column("failed", number=True), Column("cause")]
    empty = "There are no upstreams yet. Apply the shipped ones with: livewell types apply --app market"
    print_table(columns, (_cells(row, now) for row in rows), empty=empty)


@upstreams.command("resume")
@NAME
@AS_JSON
def resume(*, name: str, as_json: bool) -> None:
    """End the silence that an upstream asked for, and a pause."""
    _say(name, _act(lambda found: found.resume(name)), _RESUMED, as_json=as_json)


@upstreams.command("probe")
@NAME
@CREDENTIAL
@AS_JSON
def probe(*, name: str, credential: str | None, as_json: bool) -> None:
    """Let one call try now whether an upstream is back."""
    _say(name, _act(lambda found: found.probe(name, credential=credential)), _PROBED, as_json=as_json)


@upstreams.command("close")
@NAME
@CREDENTIAL
@AS_JSON
def close(*, name: str, credential: str | None, as_json: bool) -> None:
    """Close a breaker: allow all calls again, before one was tried."""
    _say(name, _act(lambda found: found.close(name, credential=credential)), _CLOSED, as_json=as_json)


def mender(app: Livewell) -> Mender:
    """The operator's hands, on the configured database."""
    from livewell.operations.mend import Mender  # noqa: PLC0415 - heavy

    return Mender(app.database)


def _act(do: Callable[[Mender], Awaitable[T]]) -> T:
    from livewell.refresh.nudges import DUE  # noqa: PLC0415 - heavy

    async def act(app: Livewell) -> T:
        answer = await do(mender(app))
        app.nudger.nudge(DUE)
        return answer

    return with_app(act)


def _say(name: str, answer: str, words: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json({"upstream": name, "answer": answer})
    else:
        echo(words[answer].format(name=name))


def _cells(row: dict[str, Any], now: datetime) -> list[str]:
    breaker = row["breaker"] or "closed"
    stopped = [
        "paused" if row["paused_at"] else "",
        f"breaker {breaker.replace('_', ' ')}" if breaker != "closed" else "",
        "it asked for silence" if row["quiet_until"] else "",
    ]
    why = ", ".join(filter(None, stopped))
    until = max(filter(None, (row["open_until"], row["quiet_until"])), default=None)
    failed = f"{row['calls_failed']:,} of {row['calls']:,}" if row["calls"] else ""
    return [
        row["name"],
        row["credential"] or "",
        f"stopped: {why}" if why else "allowed",
        breaker.replace("_", " "),
        age(until, now),
        failed,
        row["cause"] or "",
    ]
