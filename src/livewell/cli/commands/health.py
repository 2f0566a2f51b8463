"""`livewell health URL`: ask a server from outside what is late; for cron and other watchdogs.

0  everything that is due has run        1  something is late, or the server does not answer
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import click

from livewell.cli.command import OK, PROBLEM, command
from livewell.cli.output import AS_JSON, print_json
from livewell.cli.terminal import echo
from livewell.errors import CallFailed, ConfigurationError
from livewell.telemetry.redact import redact
from livewell.words import span

PATH = "/health/schedules"
_BODY_BYTES_MAX = 200_000
_SHOWN_MAX = 20


@command("health")
@click.argument("url", metavar="URL")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(0.1, 60),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="For the whole answer.",
)
@AS_JSON
@click.pass_context
def health(ctx: click.Context, *, url: str, seconds: float, as_json: bool) -> None:
    """Ask a server whether anything that runs by the clock is late.

    URL is where the server is, for example https://livewell.example.com; /health/schedules is added to a bare address. Prints nothing but problems, so cron mails only those.
    """
    verdict = asyncio.run(_ask(_address(url), seconds))
    if as_json:
        print_json(verdict)
    elif not verdict["ok"]:
        echo(redact(f"livewell: health: {_words(verdict)}"), err=True)
    ctx.exit(OK if verdict["ok"] else PROBLEM)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https") or parts.username is not None or parts.query:
        raise ConfigurationError(f"URL {redact(url)!r}: write it like https://livewell.example.com, without a login")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or PATH}"


async def _ask(address: str, seconds: float) -> dict[str, Any]:
    """One request to the host that was named, wherever it is; nothing is followed."""
    from livewell.outbound import Outbound  # noqa: PLC0415 - heavy

    host = urlsplit(address).hostname or ""
    hosts = [f"[{host}]" if ":" in host else host]
    try:
        async with Outbound(allowed_hosts=hosts, private_hosts=hosts, deadline_seconds=seconds) as outbound:
            answer = await outbound.get(address, body_bytes_max=_BODY_BYTES_MAX)
    except CallFailed as error:
        return {"ok": False, "url": address, "status": error.status, "late": [], "problem": str(error)}
    return _read(address, answer.status, answer.body)


def _read(address: str, status: int, body: bytes) -> dict[str, Any]:
    """A 200 that does not say so itself is somebody else's page."""
    try:
        told = json.loads(body)
        late = [{"name": str(one["name"]), "late_seconds": float(one["late_seconds"])} for one in told["late"]]
    except (ValueError, KeyError, TypeError):
        late, told = [], None
    good = status == 200 and told is not None and not late
    problem = None if told is not None and status in (200, 503) else f"status {status}, and no answer of Livewell's"
    return {"ok": good, "url": address, "status": status, "late": late, "problem": problem}


def _words(verdict: dict[str, Any]) -> str:
    if verdict["problem"]:
        return f"{verdict['url']}: {verdict['problem']}"
    if not verdict["late"]:
        return f"{verdict['url']}: the server has lost its database, or is stopping"
    named = [f"{one['name']} ({span(one['late_seconds'])})" for one in verdict["late"][:_SHOWN_MAX]]
    more = f" and {len(verdict['late']) - _SHOWN_MAX} more" if len(verdict["late"]) > _SHOWN_MAX else ""
    return f"late: {', '.join(named)}{more}. Is a worker running? See: livewell schedules list"
