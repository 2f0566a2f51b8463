"""`livewell get`: one key with its value and how far it can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from livewell.cli.administration import database_now, with_app
from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, age, print_facts, print_json

if TYPE_CHECKING:
    from datetime import datetime

    from livewell.app import Livewell
    from livewell.refresh.reading import Reading

_ROWS_MAX = 5


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

    Exits with 1 when there is no value, or it is stale or failing.
    """

    from livewell.refresh.admin import TypeAdmin  # noqa: PLC0415 - heavy

    async def read(app: Livewell) -> tuple[Reading, datetime, list[str]]:
        reading = await app.get(name, key, max_age=_span(max_age), wait=_span(wait))
        columns = (await TypeAdmin(app.database).type(name))["columns"]
        return reading, await database_now(app), [column["name"] for column in columns]

    reading, now, order = with_app(read)
    if as_json:
        print_json(record(reading))
    else:
        print_facts(_facts(reading, now, order))
    if reading.value is None or reading.verdict in ("stale", "failing", "missing"):
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
        "version": reading.version,
        "reason": reading.reason,
        "error": reading.error,
    }


def _span(text: str | None) -> str | float | None:
    """`5` is five seconds, as `5s` is."""
    return float(text) if text is not None and text.replace(".", "", 1).isdigit() else text


def _facts(reading: Reading, now: datetime, order: list[str]) -> dict[str, object]:
    """Values in the order of the file."""
    facts: dict[str, object] = {
        "verdict": reading.verdict,
        "source": age(reading.source_at, now) or "gives no time",
        "fetched": age(reading.fetched_at, now) or "never",
        "checked": age(reading.checked_at, now) or "never",
    }
    if reading.reason:
        facts["last failure"] = f"{reading.reason}: {reading.error}" if reading.error else reading.reason
    if isinstance(reading.value, dict):
        return facts | {column: reading.value[column] for column in order if column in reading.value}
    if isinstance(reading.value, list):
        facts["rows"] = len(reading.value)
        facts |= {
            f"row {place}": row
            for place, row in enumerate(
                reading.value[-_ROWS_MAX:], len(reading.value) - len(reading.value[-_ROWS_MAX:]) + 1
            )
        }
    return facts
