"""`livewell state`: the whole system on one screen.

What is fresh, what waits, who works, what limits, what was tolerated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livewell.cli.administration import with_app
from livewell.cli.command import command
from livewell.cli.output import AS_JSON, Column, print_json, print_table, short
from livewell.cli.terminal import echo
from livewell.telemetry.redact import redact
from livewell.telemetry.system_state import part
from livewell.words import number, span

if TYPE_CHECKING:
    from livewell.app import Livewell

_WARNINGS_MAX = 8
_STUCK_MAX = 12
_YEAR_SECONDS = 366 * 86_400
_VERDICTS = ("fresh", "unverifiable", "stale", "lagging", "missing", "failing")


@command("state")
@AS_JSON
def state(*, as_json: bool) -> None:
    """Show the whole system on one screen: what is fresh, what waits, who works, what limits.

    Figures are exact where that is cheap and estimated from a sample, at most ten seconds old,
    where it is not; each part says which.
    """
    from livewell.operations.state import read_state  # noqa: PLC0415 - heavy

    async def read(app: Livewell) -> dict[str, Any]:
        return await read_state(app.database)

    document = with_app(read)
    if as_json:
        print_json(document)
        return
    _show(document)


def _show(document: dict[str, Any]) -> None:
    from livewell.operations.state import how_known, stuck  # noqa: PLC0415 - heavy
    from livewell.refresh.freshness import overall  # noqa: PLC0415 - heavy

    refresh, queue, limits = part(document, "refresh"), part(document, "queue"), part(document, "limits")
    found = overall(document)
    share = "nothing is watched" if found.share is None else f"{found.share:.1%} of {found.followed:,} watched keys"
    _heading(f"Is everything fresh?  {share}", how_known(document, "refresh"))
    if refresh:
        echo(
            f"{refresh['viewers']:,} viewers in {refresh['sessions']:,} sessions with "
            f"{refresh['subscriptions']:,} subscriptions{_due(refresh)}"
        )
    columns = [Column("type"), *(Column(word, number=True) for word in _VERDICTS)]
    columns += [Column("refreshed", number=True), Column("refused", number=True), Column("note", elastic=True)]
    print_table(columns, map(_type_cells, refresh.get("types", ())), empty="There are no types: livewell types apply")

    standing = stuck(document)
    echo(
        f"\nWhat is stuck?  {f'{len(standing):,} things; livewell doctor says what mends them' if standing else 'nothing'}"
    )
    for line in standing[:_STUCK_MAX]:
        echo(f"  {redact(line)}")

    waiting = sum(one["ready"] for one in queue.get("queues", ()))
    _heading(f"What waits?  {waiting:,} jobs could run now", how_known(document, "queue"))
    columns = [Column("queue"), *(Column(word, number=True) for word in ("ready", "oldest", "running", "delayed"))]
    columns += [Column(word, number=True) for word in ("held", "dead", "workers", "done/min", "ms")]
    print_table(
        [*columns, Column("note")], map(_queue_cells, queue.get("queues", ())), empty="There are no queues yet."
    )

    workers = queue.get("workers", ())
    _heading(f"Who works?  {len(workers):,} worker{'s' * (len(workers) != 1)}", how_known(document, "queue"))
    columns = [Column("worker", elastic=True), Column("version"), Column("holds", number=True), Column("lease")]
    print_table(columns, map(_worker_cells, workers), empty="Nobody. Start one with: livewell worker module:attribute")
    for one in part(document, "leases").get("singletons", ()):
        if one["released"]:
            continue  # between two runs of a schedule: nobody's, as it should be
        echo(f"{one['name']}: {_holder(one)}")

    if limits.get("limiters"):
        _heading("What do limits allow?", how_known(document, "limits"))
        columns = [Column("limiter"), Column("credential"), Column("calls", number=True), Column("budget", number=True)]
        print_table(
            [*columns, Column("ends"), Column("breaker"), Column("now")],
            map(_limiter_cells, limits["limiters"]),
            empty="",
        )

    warnings = part(document, "database").get("warnings", ())
    if warnings:
        _heading(f"What was tolerated?  {len(warnings):,} kinds of warnings in this hour and the last", "exact")
        columns = [Column("where"), Column("what", elastic=True), Column("times", number=True)]
        rows = ([one["place"], short(one["what"]), number(one["this_hour"] + one["last_hour"])] for one in warnings)
        print_table(columns, list(rows)[:_WARNINGS_MAX], empty="")
    echo(
        f"\nRelease {part(document, 'database').get('release')}, read in {document['took_ms']:.0f} ms. What is wrong, and what mends it: livewell doctor"
    )


def _heading(text: str, how: str) -> None:
    echo(f"\n{text}  ({how})")


def _due(refresh: dict[str, Any]) -> str:
    due = sum(one["keys"] for one in refresh["due"])
    return f"; {due:,} keys are due and not queued yet" if due else ""


def _type_cells(row: dict[str, Any]) -> list[str]:
    verdicts = [number(row["keys"].get(word)) for word in _VERDICTS]
    return [row["name"], *verdicts, number(row["refreshed"]), number(row["refused"] or None), _type_note(row)]


def _type_note(row: dict[str, Any]) -> str:
    if row["paused_at"]:
        return "paused"
    if row["upstream_paused_at"]:
        return f"upstream {row['upstream']} is paused"
    return f"parked: {row['parked_reason']}" if row["parked_reason"] else ""


def _queue_cells(row: dict[str, Any]) -> list[str]:
    return [
        row["name"],
        number(row["ready"]),
        span(row["oldest_ready_seconds"]),
        number(row["running"]),
        number(row["delayed"] or None),
        number(row["held"] or None),
        number(row["dead"] or None),
        number(row["workers"]),
        number(float(row["done_per_minute"])),
        number(None if row["mean_ms"] is None else float(row["mean_ms"])),
        "paused" if row["paused_at"] else "",
    ]


def _worker_cells(row: dict[str, Any]) -> list[str]:
    left = row["lease_left_seconds"]
    return [row["name"], row["version"], number(row["holds"]), f"{span(left)} left" if left > 0 else "expired"]


def _holder(one: dict[str, Any]) -> str:
    if one["held"]:
        return f"held by {one['holder']} for {span(one['held_seconds'])}"
    return f"expired {span(one['expired_seconds'])} ago; was held by {one['holder']}"


def _limiter_cells(row: dict[str, Any]) -> list[str]:
    calls = (
        "" if row["rate_calls"] is None else f"{row['spent']:,} of {row['rate_calls']:,} in {span(row['rate_seconds'])}"
    )
    budget = ""
    if row["budget_units"] is not None:
        budget = (
            f"{(row['used'] + row['reserved']) / row['budget_units']:.1%} of {row['budget_units']:,} "
            f"{row['budget_unit']}"
        )
    left = row["budget_left_seconds"]
    ends = "" if left is None else f"in {span(left)}" if left < _YEAR_SECONDS else "not soon"
    wait = f" for {span(row['wait_seconds'])}" if row["wait_seconds"] else ""
    now = (
        "retired"
        if not row["active"]
        else "calls allowed"
        if row["calls_now"]
        else f"calls stopped: {row['waits_for']}{wait}"
    )
    return [row["name"], row["credential"], calls, budget, ends, row["breaker"].replace("_", " "), now]
