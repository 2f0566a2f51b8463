"""When a budget ends at a given pace (X4). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from livewell.refresh.plan.facts import BudgetFacts

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """The budget of one upstream: what is there, what is used, and when it ends at this pace."""

    unit: str
    units: float
    stop: float
    used: float
    span_seconds: float
    needed_per_span: float  # at the pace of the plan, once the span is full of it
    ends_in_seconds: float | None  # None: it does not end


def plan_budget(facts: BudgetFacts, pace: float) -> BudgetPlan:
    """pace: units a second, on average over days and nights."""
    span = facts.span_seconds if facts.span_seconds is not None else _DAY_SECONDS
    used = sum(units for _, units in facts.used)
    stop = facts.units * facts.stop
    if facts.reset_seconds is None:
        ends = _ends_rolling(facts.used, pace, stop, span)
    else:
        ends = _ends_today(used, pace, stop, facts.reset_seconds)
    return BudgetPlan(facts.unit, facts.units, facts.stop, used, span, pace * span, ends)


def _ends_today(used: float, pace: float, stop: float, reset_seconds: float) -> float | None:
    """Before the next reset, or on every day after it."""
    if used >= stop:
        return 0.0
    if pace > 0 and (stop - used) / pace < reset_seconds:
        return (stop - used) / pace
    return reset_seconds + stop / pace if pace * _DAY_SECONDS > stop else None


def _ends_rolling(history: Sequence[tuple[float, float]], pace: float, stop: float, span: float) -> float | None:
    """Hour by hour: what was used leaves the span one hour after it is `span` old, and what will be used comes in."""
    used = sum(units for _, units in history)
    if used >= stop:
        return 0.0
    leaving: dict[int, float] = {}
    hours = int(span // 3600) + 1  # the oldest hour counts until all of it is past
    for ago, units in history:
        place = max(0, hours - int(ago))
        leaving[place] = leaving.get(place, 0.0) + units
    for hour in range(hours + 1):
        used -= leaving.get(hour, 0.0)
        if pace > 0 and used + pace * 3600 > stop:
            return hour * 3600 + max(0.0, (stop - used) / pace)
        used += pace * 3600
    return None


def pace_of_day(facts: BudgetFacts, hour_seconds: float) -> float:
    """Units a second in the last day, or since the first use if that is later; hour_seconds: since the hour began.

    At least an hour is looked at: a minute of starting up says nothing about a day.
    """
    lately = [(hours, units) for hours, units in facts.used if hours < 24]
    if not lately:
        return 0.0
    oldest = max(hours for hours, _ in lately)
    return sum(units for _, units in lately) / max(oldest * 3600 + hour_seconds, 3600.0)
