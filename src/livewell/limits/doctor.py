"""Do limits stop work? Budgets, breakers, and upstreams that asked for silence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from livewell.finding import Check, Finding, Patient, instant, span
from livewell.telemetry.system_state import part

_HIGH = 0.75
_SILENT_SECONDS = 60.0


async def quota(patient: Patient) -> Sequence[Finding]:
    """Budgets that are reached, or will be."""
    return [
        finding for one in part(patient.state, "limits").get("limiters", ()) if one["active"] for finding in _quota(one)
    ]


def _quota(one: dict[str, Any]) -> Iterator[Finding]:
    if one["budget_units"] is None:
        return
    used = (one["used"] + one["reserved"]) / one["budget_units"]
    name = _name(one)
    seen = f"Limiter {name} has used {used:.1%} of {one['budget_units']:,} {one['budget_unit']}"
    command = (
        "livewell queues limiters (slow types down with: livewell types show TYPE, then `ttl` in its file and "
        "livewell types apply FILE)"
    )
    if used >= one["budget_stop"] or (one["waits_for"] == "budget" and not one["calls_now"]):
        means = f"Nothing more is fetched. There is room again in {span(one['wait_seconds'])} at the earliest."
        yield Finding(
            "quota_reached", name, f"{seen}: the stop is at {one['budget_stop']:.0%}.", means, command, level="P0"
        )
    elif used >= one["budget_background_stop"]:
        means = f"Scheduled refreshes stand still; viewers' work goes on until {one['budget_stop']:.0%}{_ends(one)}."
        yield Finding(
            "quota_background",
            name,
            f"{seen}: background work stops at {one['budget_background_stop']:.0%}.",
            means,
            command,
        )
    elif used >= _HIGH:
        means = f"It will be used up before its time{_ends(one)}."
        yield Finding("quota_high", name, f"{seen}.", means, command, level="P2")


def _ends(one: dict[str, Any]) -> str:
    left = one["budget_left_seconds"]
    return "" if left is None else f", in {span(left)} at the pace of the last day"


async def breakers(patient: Patient) -> Sequence[Finding]:
    """Upstreams that are left alone because they failed."""
    return [
        Finding(
            "breaker_open",
            _name(one),
            f"The breaker of {_name(one)} is {one['breaker'].replace('_', ' ')}, calls are stopped until "
            f"{instant(one['open_until'])}: {one['failures']:,} of {one['calls']:,} calls failed in ten minutes.",
            "The upstream fails; nothing is asked of it until then, and after that one call tries whether it is "
            "back. It closes by itself; to try now, and not then, there is a command.",
            f"livewell upstreams probe {one['name']}",
        )
        for one in part(patient.state, "limits").get("limiters", ())
        if one["active"] and one["breaker"] != "closed"
    ]


async def silences(patient: Patient) -> Sequence[Finding]:
    """Upstreams that asked to be left alone, and for more than a moment."""
    return [
        Finding(
            "upstream_silent",
            _name(one),
            f"Upstream {_name(one)} asked for silence until {instant(one['quiet_until'])}, for "
            f"{span(one['wait_seconds'])} more.",
            "It answered 429, or with a Retry-After: no call is made until then, and what is watched turns "
            "stale. If it asks for far too much, end the silence; the next such answer begins another.",
            f"livewell upstreams resume {one['name']}",
        )
        for one in part(patient.state, "limits").get("limiters", ())
        if one["active"] and one["waits_for"] == "upstream" and (one["wait_seconds"] or 0) > _SILENT_SECONDS
    ]


def _name(one: dict[str, Any]) -> str:
    return f"{one['name']}/{one['credential']}" if one["credential"] else str(one["name"])


CHECKS: tuple[Check, ...] = (
    quota,
    breakers,
    silences,
)
