"""Limiters and budgets as gauges."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.gauge import Gauge, Sample, each
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]

_BREAKER = {"closed": 0, "half_open": 1, "open": 2}
_LIMITER = ("name", "credential")


def _breakers(document: Document) -> Iterator[Sample]:
    for one in part(document, "limits").get("limiters", ()):
        yield (one["name"], one["credential"]), _BREAKER[one["breaker"]]


def _budget_used(document: Document) -> Iterator[Sample]:
    for one in part(document, "limits").get("limiters", ()):
        if one["budget_units"] is not None:
            yield (one["name"], one["credential"], one["budget_unit"]), one["used"] + one["reserved"]


def _budget_remaining(document: Document) -> Iterator[Sample]:
    for one in part(document, "limits").get("limiters", ()):
        if one["budget_units"] is not None:
            left = max(one["budget_units"] - one["used"] - one["reserved"], 0)
            yield (one["name"], one["credential"], one["budget_unit"]), left


GAUGES = (
    Gauge(
        "livewell_limiter_rate_used",
        "Calls granted in the window.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "spent"),
    ),
    Gauge(
        "livewell_limiter_rate_limit",
        "Calls allowed in the window.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "rate_calls"),
    ),
    Gauge(
        "livewell_limiter_running",
        "Calls that run.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "running"),
    ),
    Gauge(
        "livewell_limiter_wait_seconds",
        "How long until a call is allowed.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "wait_seconds"),
    ),
    Gauge(
        "livewell_limiter_calls",
        "Calls that ended in the last ten minutes.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "calls"),
    ),
    Gauge(
        "livewell_limiter_failures",
        "Of those, failures blamed on the upstream.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "failures"),
    ),
    Gauge("livewell_limiter_breaker", "0 closed, 1 half open, 2 open.", ("limiter", "credential"), _breakers),
    Gauge(
        "livewell_budget_used",
        "Units used and reserved in the span of the budget.",
        ("limiter", "credential", "unit"),
        _budget_used,
    ),
    Gauge(
        "livewell_budget_remaining",
        "Units left in the span of the budget.",
        ("limiter", "credential", "unit"),
        _budget_remaining,
    ),
    Gauge(
        "livewell_budget_limit",
        "Units of the budget.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "budget_units"),
    ),
    Gauge(
        "livewell_budget_left_seconds",
        "When the budget is reached, at the pace of the last day.",
        ("limiter", "credential"),
        each("limits", "limiters", _LIMITER, "budget_left_seconds"),
    ),
)
