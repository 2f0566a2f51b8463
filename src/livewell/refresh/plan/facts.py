"""What a plan is computed from, as values.

Demand in groups of like keys, costs by type, limits by upstream. They come from the document that
livewell.plan_state() gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from livewell.schedule.cron import CronError, next_slot

_WALKS_MAX = 2_000  # instants of a cron expression that are looked at
_WALK_DAYS = 7


@dataclass(frozen=True, slots=True)
class Group:
    """Watched keys of one type that are alike in time to live and viewers.

    viewers: of all of them; calls: to refresh each of them once.
    """

    upstream: str
    type: str
    lane: int
    state: str  # kept, missing, failing, stopped
    own_ttl: bool
    ttl_seconds: float
    keys: int
    viewers: int
    calls: float

    @property
    def asked(self) -> bool:
        """Whether refreshes of it cost anything."""
        return self.state in ("kept", "missing")


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """What a type costs.

    tries: answers for each that was good; bytes_per_key: of one answer, for one key.
    """

    name: str
    upstream: str
    ttl_seconds: float
    keys_max: int = 1
    bytes_per_key: float = 1.0
    tries: float = 1.0
    universe: int = 0
    walks_per_day: float = 0.0
    open_share: float = 1.0
    stopped: bool = False
    measured: bool = False


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """A budget over all credentials.

    used: (hours ago, units); either rolling (span_seconds) or by the day (reset_seconds until the
    next).
    """

    unit: str
    units: float
    stop: float
    used: tuple[tuple[float, float], ...] = ()
    span_seconds: float | None = None
    reset_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class UpstreamFacts:
    """What an upstream allows.

    calls_per_second: as the limiter grants them in the long run; None: nothing limits them.
    """

    name: str
    calls_per_second: float | None
    reserve: float = 0.0
    call_seconds: float | None = None
    budget: BudgetFacts | None = None
    paused: bool = False
    calls_last_minute: float = 0.0


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it, at one instant. cut: there was more than is looked at."""

    at: datetime
    groups: tuple[Group, ...]
    types: tuple[TypeFacts, ...]
    upstreams: tuple[UpstreamFacts, ...]
    cut: bool = False


def read_facts(document: Mapping[str, Any]) -> Facts:
    """From what plan_state() says."""
    at = datetime.fromisoformat(document["at"])
    return Facts(
        at,
        tuple(Group(**one) for one in document["groups"]),
        tuple(_type(one, at) for one in document["types"]),
        tuple(_upstream(one) for one in document["upstreams"]),
        document["cut"],
    )


def granted_per_second(calls: float, window_seconds: float, call_seconds: float | None) -> float:
    """What the limiter gives in the long run.

    A call counts while it is in flight, and one window more (limiter_room.sql).
    """
    return calls / (window_seconds + (call_seconds or 0.0))


def _type(one: Mapping[str, Any], at: datetime) -> TypeFacts:
    return TypeFacts(
        one["type"],
        one["upstream"],
        one["ttl_seconds"],
        one["keys_max"],
        one["bytes_per_key"],
        min(max(one["tries"], 1.0), 100.0),
        one["universe"],
        walks_per_day(one["cron"], one["zone"], at) if one["cron"] else 0.0,
        one["open_share"],
        one["stopped"],
        one["measured"] > 0,
    )


def _upstream(one: Mapping[str, Any]) -> UpstreamFacts:
    limits = []
    if one["rate_calls"] is not None:
        limits.append(granted_per_second(one["rate_calls"], one["rate_seconds"], one["call_seconds"]))
    if one["concurrency"] is not None and one["call_seconds"]:
        limits.append(one["concurrency"] / one["call_seconds"])
    spent = one["spent"] or 0.0
    return UpstreamFacts(
        one["upstream"],
        min(limits) if limits else None,
        one["reserve"] or 0.0,
        one["call_seconds"],
        _budget(one),
        one["paused"],
        spent * 60 / one["rate_seconds"] if one["rate_seconds"] else 0.0,
    )


def _budget(one: Mapping[str, Any]) -> BudgetFacts | None:
    if one["budget_units"] is None:
        return None
    used: Sequence[Sequence[float]] = one["used"]
    return BudgetFacts(
        one["budget_unit"],
        one["budget_units"],
        one["budget_stop"],
        tuple((hours, units) for hours, units in used),
        one["budget_seconds"],
        one["reset_seconds"],
    )


def walks_per_day(cron: str, zone: str, after: datetime) -> float:
    """How often a cron expression comes, over the next week.

    One that comes less often, by its next instant.
    """
    end, at, walks = after + timedelta(days=_WALK_DAYS), after, 0
    try:
        while walks < _WALKS_MAX:
            at = next_slot(cron, zone, at)
            if at > end:
                break
            walks += 1
    except CronError:
        return 0.0
    if walks == _WALKS_MAX:
        return walks / ((at - after).total_seconds() / 86_400)
    return walks / _WALK_DAYS if walks else 86_400 / max((at - after).total_seconds(), 1.0)
