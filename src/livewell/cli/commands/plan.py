"""`livewell plan`: what freshness is possible, when the budget ends, what to slow down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from livewell.cli.administration import with_app
from livewell.cli.command import PROBLEM, command
from livewell.cli.output import AS_JSON, Column, print_json, print_table
from livewell.cli.terminal import echo

if TYPE_CHECKING:
    from livewell.app import Livewell
    from livewell.refresh.plan.budget import BudgetPlan
    from livewell.refresh.plan.demand import Freshness, TypePlan, UpstreamPlan
    from livewell.refresh.plan.report import Plan


@command("plan")
@AS_JSON
@click.pass_context
def plan(ctx: click.Context, *, as_json: bool) -> None:
    """Say what freshness is possible with who watches now.

    From subscriptions, times to live, measured sizes and limits: calls and bytes needed, the share
    of watched keys that can be fresh, the day the budget ends, what to slow down. Exits with 1 when
    not everything that is watched can be kept fresh, or the budget ends.
    """
    from livewell.refresh.plan.report import document, make_plan  # noqa: PLC0415 - heavy

    async def ask(app: Livewell) -> Plan:
        return await make_plan(app.database)

    found = with_app(ask)
    if as_json:
        print_json(document(found))
    else:
        _print(found)
    if found.short:
        ctx.exit(PROBLEM)


def _print(found: Plan) -> None:
    if not found.upstreams:
        echo("There are no upstreams yet. Apply the shipped ones with: livewell types apply --app market")
    for place, one in enumerate(found.upstreams):
        echo("\n" * (place > 0) + "\n".join(_lines(one, found)))
        print_table(_COLUMNS, (_cells(kind, one) for kind in one.types), empty="No type comes from it.")
        _print_advice(one)
    if found.cut:
        echo("\nThere was more than a plan looks at: the figures are too low.")


def _lines(one: UpstreamPlan, found: Plan) -> list[str]:
    from livewell.refresh.plan.report import not_fresh_words  # noqa: PLC0415 - heavy

    limit = "no limit" if one.calls_allowed is None else f"{one.calls_allowed * 60:,.0f} are allowed"
    lines = [
        f"{one.upstream}{' (paused)' if one.paused else ''}: {_share(one.freshness)} can be fresh",
        (
            f"  calls a minute: {one.calls_needed * 60:,.0f} are needed, {limit}, {one.calls * 60:,.0f} will be "
            f"made; in the last minute {one.calls_last_minute:,.0f}"
        ),
    ]
    if words := not_fresh_words(one):
        lines.append(f"  not fresh: {words}")
    if one.budget is not None:
        lines.append(f"  budget: {_budget(one, one.budget, found)}")
    return [*lines, ""]


def _share(one: Freshness) -> str:
    return f"{one.share_fresh:.0%} of {one.keys:,} watched keys, {one.viewers_fresh:.0%} of what viewers see,".replace(
        "%", " %"
    )


def _budget(one: UpstreamPlan, budget: BudgetPlan, found: Plan) -> str:
    from datetime import UTC, timedelta  # noqa: PLC0415 - here only

    from livewell.refresh.plan.report import quantity, span  # noqa: PLC0415 - heavy

    used = (
        f"{quantity(budget.used, budget.unit)} of {quantity(budget.units, budget.unit)} used in "
        f"{span(budget.span_seconds)}"
    )
    pace = (
        f"this pace uses {quantity(budget.needed_per_span, budget.unit)} ({quantity(one.units * 60, budget.unit)} "
        "a minute)"
    )
    if budget.ends_in_seconds is None:
        return f"{used}; {pace}: it lasts"
    end = (found.at + timedelta(seconds=budget.ends_in_seconds)).astimezone(UTC)
    return f"{used}; {pace}: it ends {end:%Y-%m-%d %H:%M} UTC, in {span(budget.ends_in_seconds)}"


_COLUMNS = [
    Column("type"),
    Column("ttl", number=True),
    Column("watched", number=True),
    Column("fresh", number=True),
    Column("age", number=True),
    Column("calls/min", number=True),
    Column("needed", number=True),
    Column("units/min", number=True),
    Column("sizes"),
]


def _cells(kind: TypePlan, one: UpstreamPlan) -> list[str]:
    from livewell.refresh.plan.report import quantity, span  # noqa: PLC0415 - heavy

    age = kind.freshness.age_seconds
    return [
        kind.type,
        span(kind.ttl_seconds),
        f"{kind.freshness.keys:,}",
        f"{kind.freshness.share_fresh:.0%}".replace("%", " %") if kind.freshness.keys else "",
        "" if age is None else span(round(age, 1)),
        f"{kind.calls * 60:,.1f}",
        f"{kind.calls_needed * 60:,.1f}",
        quantity(kind.units * 60, one.budget.unit if one.budget is not None else "bytes"),
        "measured" if kind.measured else "by the file",
    ]


def _print_advice(one: UpstreamPlan) -> None:
    from livewell.refresh.plan.report import advice_words  # noqa: PLC0415 - heavy

    if one.advice:
        echo("\nto slow down (ttl in the type's file, then: livewell types apply FILE):")
    for advice in one.advice:
        echo(f"  {advice_words(advice)}")
