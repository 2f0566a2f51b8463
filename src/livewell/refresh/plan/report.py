"""The plan of one database (X4).

It reads the state of the database, computes the plan, and reports it: as a document for programs,
and in words for people.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from livewell.db import Database
from livewell.refresh.plan.budget import BudgetPlan
from livewell.refresh.plan.demand import MONTH_SECONDS, Advice, Freshness, TypePlan, UpstreamPlan, plan
from livewell.refresh.plan.facts import read_facts

_TOLD = 0.005  # of the keys: less is not worth a word
_STATE = "SELECT livewell.plan_state()"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is possible, by upstream, as of one instant."""

    at: datetime
    upstreams: tuple[UpstreamPlan, ...]
    cut: bool

    @property
    def short(self) -> bool:
        """Something that is watched cannot be kept fresh, or not for long."""
        return any(one.short for one in self.upstreams)


async def make_plan(database: Database) -> Plan:
    """Ask the database; it must be a login that sees all viewers: worker, operate or readonly."""
    facts = read_facts((await database.call(_STATE))[0][0])
    # A second for tens of thousands of keys: in a thread, for others use this loop.
    return Plan(facts.at, await asyncio.to_thread(plan, facts), facts.cut)


# ── for programs ──


def document(found: Plan) -> dict[str, Any]:
    """Calls and bytes a minute and a month, shares from 0 to 1, times in seconds."""
    return {
        "at": found.at,
        "short": found.short,
        "cut": found.cut,
        "upstreams": [_upstream(one, found.at) for one in found.upstreams],
    }


def _upstream(one: UpstreamPlan, at: datetime) -> dict[str, Any]:
    return {
        "upstream": one.upstream,
        "paused": one.paused,
        "short": one.short,
        "calls_allowed_per_minute": None if one.calls_allowed is None else _round(one.calls_allowed * 60),
        "calls_needed_per_minute": _round(one.calls_needed * 60),
        "calls_per_minute": _round(one.calls * 60),
        "calls_last_minute": _round(one.calls_last_minute),
        "units_needed_per_minute": _round(one.units_needed * 60),
        "units_per_minute": _round(one.units * 60),
        "units_needed_per_month": _round(_month(one)),
        **_freshness(one.freshness),
        "not_fresh": {why: _round(share) for why, share in one.not_fresh},
        "budget": None if one.budget is None else _budget(one.budget, at),
        "types": [_type(plan) for plan in one.types],
        "advice": [_advice(advice) for advice in one.advice],
    }


def _type(one: TypePlan) -> dict[str, Any]:
    return {
        "type": one.type,
        "ttl_seconds": one.ttl_seconds,
        **_freshness(one.freshness),
        "calls_needed_per_minute": _round(one.calls_needed * 60),
        "calls_per_minute": _round(one.calls * 60),
        "units_needed_per_minute": _round(one.units_needed * 60),
        "units_per_minute": _round(one.units * 60),
        "open_share": _round(one.open_share),
        "measured": one.measured,
    }


def _freshness(one: Freshness) -> dict[str, Any]:
    return {
        "keys": one.keys,
        "viewers": one.viewers,
        "share_fresh": _round(one.share_fresh),
        "viewers_fresh": _round(one.viewers_fresh),
        "age_seconds": None if one.age_seconds is None else _round(one.age_seconds),
    }


def _budget(one: BudgetPlan, at: datetime) -> dict[str, Any]:
    return {
        "unit": one.unit,
        "units": one.units,
        "stop": one.stop,
        "used": one.used,
        "span_seconds": one.span_seconds,
        "needed_per_span": _round(one.needed_per_span),
        "ends_at": _ends_at(one.ends_in_seconds, at),
    }


def _advice(one: Advice) -> dict[str, Any]:
    return {
        "type": one.type,
        "what": one.what,
        "from_seconds": one.from_seconds,
        "to_seconds": one.to_seconds,
        "saves_calls_per_minute": _round(one.saves_calls * 60),
        "share_fresh_before": _round(one.share_fresh[0]),
        "share_fresh_after": _round(one.share_fresh[1]),
        "words": advice_words(one),
    }


def _ends_at(seconds: float | None, at: datetime) -> datetime | None:
    return None if seconds is None else at + timedelta(seconds=seconds)


def _month(one: UpstreamPlan) -> float:
    return sum(plan.units_needed * plan.open_share for plan in one.types) * MONTH_SECONDS


def _round(value: float) -> float:
    return round(value, 4)


# ── for people ──


_WHY = {
    "limit": "wait for the call limit",
    "calls": "are being fetched: a time to live this short is over before the next answer is there",
    "failing": "fail, and are asked again later (livewell doctor names them)",
    "missing": "are unknown to the upstream",
    "stopped": "are paused or parked",
}


def not_fresh_words(one: UpstreamPlan) -> str:
    """`25 % fail, and are asked again later; 1 % are being fetched …`.

    Nothing if nearly everything can be fresh.
    """
    told = [f"{share:.0%} ".replace("%", " %") + _WHY[why] for why, share in one.not_fresh if share >= _TOLD]
    return "; ".join(told)


def advice_words(one: Advice) -> str:
    """`quote 1 min → 2 min saves 140 calls/min: share fresh 62 % → 100 %`, and what becomes of the budget."""
    before, after = one.share_fresh
    what = one.type if one.what == "ttl" else f"{one.type}: keys with a time to live of their own,"
    words = f"{what} {span(one.from_seconds)} → {span(one.to_seconds)} saves {one.saves_calls * 60:,.0f} calls/min"
    words += f": share fresh {before:.0%} → {after:.0%}".replace("%", " %")
    ended, ends = one.ends_in_seconds
    if ended is not None:
        words += (
            ", and the budget lasts"
            if ends is None
            else f", and the budget ends in {span(ends)} instead of {span(ended)}"
        )
    return words


def span(seconds: float) -> str:
    """The largest unit that leaves a whole number, or nearly one."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 10 * size or (seconds >= size and abs(seconds / size - round(seconds / size)) < 0.01):
            return f"{seconds / size:.0f} {unit}"
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == round(seconds) else f"{seconds:.1f} s"


def quantity(units: float, unit: str) -> str:
    """Bytes with their prefix (10³, as everywhere here), anything else as a number with its name."""
    if unit != "bytes":
        return f"{units:,.0f} {unit}"
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if units >= size:
            return f"{units / size:,.1f} {name}"
    return f"{units:,.0f} B"
