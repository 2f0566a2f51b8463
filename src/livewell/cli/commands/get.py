"""`livewell get`: one key with its value and how far it can be trusted."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, Column, print_facts, print_json, print_table, short
from livewell.cli.terminal import echo
from livewell.words import age, span

if TYPE_CHECKING:
    from datetime import datetime

    from livewell.app import Livewell
    from livewell.refresh.reading import Reading

_ROWS_MAX = 10


@command("get")
@click.argument("name", metavar="TYPE")
@click.argument("key", metavar="KEY")
@click.option(
    "--max-age",
    metavar="TIME",
    help="So long ago it may have been checked, as 30s or 5m; by the type's rule, if not given.",
)
@click.option("--wait", metavar="TIME", default="5s", show_default=True, help="How long to wait for a refresh.")
@AS_JSON
@click.pass_context
def get(ctx: click.Context, *, name: str, key: str, max_age: str | None, wait: str, as_json: bool) -> None:
    """Read one key; not fresh enough, wait for its refresh (by whatever worker runs).

    Exits with 1 when there is no value, when it is stale or failing, and when it cannot be
    refreshed now (budget used up, breaker open, upstream silent …); it says until when.
    """

    from livewell.refresh.registry.admin import TypeAdmin  # noqa: PLC0415 - heavy

    async def read(app: Livewell) -> tuple[Reading, datetime, list[str]]:
        reading = await app.get(name, key, max_age=_span(max_age), wait=_span(wait))
        columns = (await TypeAdmin(app.database).type(name))["columns"]
        return reading, await database_now(app), [column["name"] for column in columns]

    reading, now, order = with_app(read)
    if as_json:
        print_json(record(reading))
    else:
        print_facts(_facts(reading, now, order))
        if isinstance(reading.value, list):
            _print_rows(reading.value, order)
    if reading.throttled or reading.value is None or reading.verdict in ("stale", "failing", "missing"):
        ctx.exit(PROBLEM)


def record(reading: Reading) -> dict[str, Any]:
    """A reading as JSON."""
    return {
        "type": reading.type,
        "key": reading.key,
        "verdict": reading.verdict,
        "value": reading.value,
        "source_at": reading.source_at,
        "fetched_at": reading.fetched_at,
        "checked_at": reading.checked_at,
        "stale_at": reading.stale_at,
        "fresh_for_seconds": reading.fresh_for_seconds,
        "version": reading.version,
        "reason": reading.reason,
        "error": reading.error,
        "throttled": reading.throttled,
        "retry_at": reading.retry_at,
    }


def _span(text: str | None) -> str | float | None:
    """`5` is five seconds, as `5s` is."""
    return float(text) if text is not None and text.replace(".", "", 1).isdigit() else text


def _throttled(reading: Reading, now: datetime) -> str:
    """Why there is no refresh now, and when to ask again."""
    from livewell.refresh.reading import THROTTLED  # noqa: PLC0415 - as late as the rest

    why = THROTTLED.get(reading.throttled or "", reading.throttled or "")
    if reading.retry_at is None:
        return why
    return f"{why}; ask again in {max((reading.retry_at - now).total_seconds(), 0):.0f} s"


def _facts(reading: Reading, now: datetime, order: list[str]) -> dict[str, object]:
    """Values in the order of the file."""
    facts: dict[str, object] = {
        "verdict": reading.verdict,
        "source": age(reading.source_at, now) or "gives no time",
        "fetched": age(reading.fetched_at, now) or "never",
        "checked": age(reading.checked_at, now) or "never",
    }
    if reading.fresh_for_seconds is not None:
        facts["turns stale"] = f"in {span(max(0.0, reading.fresh_for_seconds))}"
    if reading.throttled:
        facts["not refreshed"] = _throttled(reading, now)
    if reading.reason:
        facts["last failure"] = f"{reading.reason}: {reading.error}" if reading.error else reading.reason
    if isinstance(reading.value, dict):
        return facts | {column: reading.value[column] for column in order if column in reading.value}
    return facts


def _print_rows(rows: list[dict[str, Any]], order: list[str]) -> None:
    """The last rows of a set or a series, oldest first, and how many are left out."""
    shown = rows[-_ROWS_MAX:]
    columns = [name for name in order if any(name in row for row in shown)]
    echo("")
    numbers = {name for name in columns if all(isinstance(row.get(name), int | float | Decimal) for row in shown)}
    print_table(
        [Column(name, number=name in numbers, elastic=name not in numbers) for name in columns],
        ([short(_cell(row.get(name))) for name in columns] for row in shown),
        empty="There are no rows.",
    )
    if len(rows) > len(shown):
        echo(f"\nThe last {len(shown)} of {len(rows):,} rows are shown; for all of them: --json")


def _cell(value: object) -> str:
    return (
        "" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    )
