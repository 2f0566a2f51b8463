"""What freshness is possible: demand against limits, as arithmetic (X4).

Pure: facts.py brings the numbers, docs/howto/plan.md explains them.

    groups of keys ──cost of one refresh──▶ calls needed ──limit──▶ how long each key waits ──▶ share fresh, age, calls, bytes ──▶ when the budget ends, what to slow down

A key with a time to live T is asked for, waits w beyond T, and is asked for again: its cycle is T +
w. While there are enough calls, w is the reaction of the due check. When there are not, the queue
ahead of the worker fills up first. Then the order of dispatch_due decides: the highest viewers ·
(waited + 10 s) goes.

In the long run every key goes when its score reaches the same height H. So w = H / viewers - 10 s
where that is positive, and H is the height at which all cycles together use just the calls there
are. Calls that carry many keys fill up before anybody waits. Lane 1 (schedules, prefetch) has what
lane 0 leaves of the rate less its reserve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from livewell.refresh.plan.budget import BudgetPlan, plan_budget
from livewell.refresh.plan.facts import Facts, Group, TypeFacts, UpstreamFacts

REACTION_SECONDS = 0.1  # from due to sent, while calls suffice
AHEAD_SECONDS = 1.75  # what is queued ahead of the worker when they do not: dispatch_room keeps up to two seconds of it
HEAD_START_SECONDS = 10.0  # as in dispatch_due
MONTH_SECONDS = 30 * 86_400.0
_STEPS = 40  # of a bisection
_HEIGHT_MAX = 1e18
_SHORT = 1.001  # of the calls allowed: more is not a rounding error
_NOTHING = 1e-6  # of the calls allowed: what is left of them is a rounding error
_VIEWERS_MIN = 0.01  # of a key that nobody watches: it goes after all others of its lane


@dataclass(frozen=True, slots=True)
class Freshness:
    """How fresh some keys are together."""

    keys: int
    viewers: int
    share_fresh: float  # of the keys, at any instant
    viewers_fresh: float  # of the viewers who look at them
    age_seconds: float | None  # since a value was last confirmed, on average; None: never

    @staticmethod
    def of(served: Sequence[Served]) -> Freshness:
        """All of them; nothing watched is all fresh."""
        keys, viewers = sum(one.group.keys for one in served), sum(one.group.viewers for one in served)
        aged = [one for one in served if one.age_seconds is not None]
        known = sum(one.group.keys for one in aged)
        return Freshness(
            keys,
            viewers,
            sum(one.group.keys * one.share_fresh for one in served) / keys if keys else 1.0,
            sum(one.group.viewers * one.share_fresh for one in served) / viewers if viewers else 1.0,
            sum(one.group.keys * (one.age_seconds or 0.0) for one in aged) / known if known else None,
        )


@dataclass(frozen=True, slots=True)
class Served:
    """A group of keys as the limits let it be."""

    group: Group
    refreshes_needed: float  # a second, if nothing limited it
    refreshes: float  # a second, as it will be
    call_cost: float  # calls for one refresh of one key, tries included
    share_fresh: float
    age_seconds: float | None

    @property
    def calls(self) -> float:
        """A second."""
        return self.refreshes * self.call_cost


@dataclass(frozen=True, slots=True)
class TypePlan:
    """One type under its upstream's limits."""

    type: str
    ttl_seconds: float
    freshness: Freshness
    calls_needed: float  # per second, here and below
    calls: float
    units_needed: float  # bytes, or whatever the budget counts
    units: float
    open_share: float
    measured: bool  # costs are counted, not taken from the file


@dataclass(frozen=True, slots=True)
class Advice:
    """Slow one thing down, and what that brings."""

    type: str
    what: str  # ttl: of the type; own_ttl: give up the times to live that some keys have of their own
    from_seconds: float
    to_seconds: float
    saves_calls: float  # per second, of what is needed
    share_fresh: tuple[float, float]  # before, after
    ends_in_seconds: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class UpstreamPlan:
    """What is possible with one upstream."""

    upstream: str
    paused: bool
    calls_allowed: float | None  # per second; None: nothing limits them
    calls_needed: float
    calls: float
    units_needed: float
    units: float
    freshness: Freshness
    types: tuple[TypePlan, ...]
    budget: BudgetPlan | None
    calls_last_minute: float  # as granted; to hold the plan against
    not_fresh: tuple[
        tuple[str, float], ...
    ] = ()  # why, and which share of the keys: stopped, failing, missing, limit, calls
    advice: tuple[Advice, ...] = ()

    @property
    def short(self) -> bool:
        """Not everything that is watched can be fresh, or not for long."""
        return self._calls_short or (self.budget is not None and self.budget.ends_in_seconds is not None)

    @property
    def _calls_short(self) -> bool:
        return self.calls_allowed is not None and self.calls_needed > self.calls_allowed * _SHORT


def plan(facts: Facts) -> tuple[UpstreamPlan, ...]:
    """One plan for each upstream that has types."""
    return tuple(_plan_upstream(upstream, facts) for upstream in facts.upstreams)


def _plan_upstream(upstream: UpstreamFacts, facts: Facts) -> UpstreamPlan:
    types = {one.name: one for one in facts.types if one.upstream == upstream.name}
    groups = [group for group in facts.groups if group.upstream == upstream.name and group.type in types]
    found = _possible(upstream, types, groups)
    return replace(found, advice=_advise(found, upstream, types, groups)) if found.short else found


def _possible(upstream: UpstreamFacts, types: dict[str, TypeFacts], groups: Sequence[Group]) -> UpstreamPlan:
    walks = {name: _walk_calls(one) for name, one in types.items()}
    served = serve(upstream, types, groups, walking=sum(walks.values()))
    plans = [
        _plan_type(one, upstream, [s for s in served if s.group.type == name], walks[name])
        for name, one in types.items()
    ]
    plans.sort(key=lambda one: (-one.calls_needed, -one.units_needed, one.type))
    pace = sum(one.units * one.open_share for one in plans)
    budget = None if upstream.budget is None else plan_budget(upstream.budget, pace)
    return UpstreamPlan(
        upstream.name,
        upstream.paused,
        upstream.calls_per_second,
        sum(one.calls_needed for one in plans),
        sum(one.calls for one in plans),
        sum(one.units_needed for one in plans),
        sum(one.units for one in plans),
        Freshness.of(served),
        tuple(plans),
        budget,
        upstream.calls_last_minute,
        _not_fresh(served, sum(one.calls_needed for one in plans), upstream.calls_per_second),
    )


def _not_fresh(served: Sequence[Served], needed: float, allowed: float | None) -> tuple[tuple[str, float], ...]:
    """What keeps the rest from being fresh.

    limit: more calls are needed than are allowed; calls: they go stale while they are fetched.
    """
    keys = sum(one.group.keys for one in served)
    short = "limit" if allowed is not None and needed > allowed * _SHORT else "calls"
    lost: dict[str, float] = {}
    for one in served:
        why = short if one.group.state == "kept" else one.group.state
        lost[why] = lost.get(why, 0.0) + one.group.keys * (1 - one.share_fresh) / keys
    return tuple(sorted(lost.items(), key=lambda part: -part[1]))


# ── calls ──


def serve(
    upstream: UpstreamFacts, types: dict[str, TypeFacts], groups: Sequence[Group], *, walking: float = 0.0
) -> list[Served]:
    """Each group as the limits let it be.

    walking: calls a second that walks through universes want, on lane 1.
    """
    call_seconds = upstream.call_seconds or 0.0
    asked = [group for group in groups if group.asked]
    people, background = ([group for group in asked if group.lane == lane] for lane in (0, 1))
    first = _fit(people, types, upstream.calls_per_second, call_seconds)
    left = _left(upstream, sum(one.calls for one in first))
    wanted = sum(_cost(group, types, 1.0) * group.keys / group.ttl_seconds for group in background)
    if left is not None and wanted + walking > 0:
        left -= min(walking, left * walking / (wanted + walking))
    second = _fit(background, types, left, call_seconds)
    idle = [Served(group, 0.0, 0.0, 0.0, 0.0, None) for group in groups if not group.asked]
    return [*first, *second, *idle]


def _left(upstream: UpstreamFacts, used: float) -> float | None:
    if upstream.calls_per_second is None:
        return None
    left = upstream.calls_per_second * (1 - upstream.reserve) - used
    return left if left > upstream.calls_per_second * _NOTHING else 0.0


def _fit(
    groups: Sequence[Group], types: dict[str, TypeFacts], calls: float | None, call_seconds: float
) -> list[Served]:
    """Find the cycles that use no more than these calls a second."""

    # As numbers: this is computed some thousand times for a plan with advice.
    terms = [
        (
            group.keys * _cost(group, types, 0.0),
            group.keys * _cost(group, types, 1.0),
            group.ttl_seconds,
            _viewers(group),
        )
        for group in groups
    ]

    def used(loose: float, ahead: float, height: float) -> float:
        return sum(
            (least + loose * (now - least)) / (ttl + ahead + max(0.0, height / viewers - HEAD_START_SECONDS))
            for least, now, ttl, viewers in terms
        )

    loose, ahead, height = 1.0, REACTION_SECONDS, 0.0
    if calls is not None and used(loose, ahead, height) > calls:
        if used(loose, AHEAD_SECONDS, height) <= calls:
            ahead = _least(lambda x: used(loose, x, height) <= calls, REACTION_SECONDS, AHEAD_SECONDS)
        else:
            ahead = AHEAD_SECONDS
            # Calls that carry many keys fill up first.
            loose = 1.0 - _least(lambda x: used(1.0 - x, ahead, height) <= calls, 0.0, 1.0)
            height = _least(lambda x: used(loose, ahead, x) <= calls, 0.0, _HEIGHT_MAX, doubling=True)
    return [
        _served(
            group,
            _cost(group, types, loose),
            _wait(group, ahead, height),
            call_seconds,
            stopped=calls is not None and calls <= 0,
        )
        for group in groups
    ]


def _served(group: Group, cost: float, wait: float, call_seconds: float, *, stopped: bool) -> Served:
    cycle = group.ttl_seconds + wait
    needed = group.keys / (group.ttl_seconds + REACTION_SECONDS)
    if stopped:
        return Served(group, needed, 0.0, cost, 0.0, None)
    fresh = max(0.0, group.ttl_seconds - call_seconds) / cycle if group.state == "kept" else 0.0
    return Served(group, needed, group.keys / cycle, cost, fresh, cycle / 2 + call_seconds)


def _wait(group: Group, ahead: float, height: float) -> float:
    return ahead + max(0.0, height / _viewers(group) - HEAD_START_SECONDS)


def _viewers(group: Group) -> float:
    """Of one of its keys."""
    return max(group.viewers / group.keys, _VIEWERS_MIN)


def _cost(group: Group, types: dict[str, TypeFacts], loose: float) -> float:
    """Calls for one refresh of one key.

    loose 1: calls carry as many keys as they do now; 0: as many as they may.
    """
    facts = types[group.type]
    now, least = group.calls / group.keys, 1 / facts.keys_max
    return facts.tries * (least + loose * max(0.0, now - least))


def _least(enough: Callable[[float], bool], low: float, high: float, *, doubling: bool = False) -> float:
    """The least number that is enough, of a condition that stays true once it is."""
    if enough(low):
        return low
    if doubling:
        step = 1.0
        while step < high and not enough(step):
            step *= 2
        low, high = step / 2 if step > 1 else low, step
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _walk_calls(facts: TypeFacts) -> float:
    """Calls a second, over the day, for walks through the universe."""
    return 0.0 if facts.stopped else facts.universe * facts.tries / facts.keys_max * facts.walks_per_day / 86_400


def _plan_type(facts: TypeFacts, upstream: UpstreamFacts, served: Sequence[Served], walking: float) -> TypePlan:
    needed = sum(one.refreshes_needed * one.call_cost for one in served)
    calls = sum(one.calls for one in served)
    refreshes_needed, refreshes = (
        sum(getattr(one, name) for one in served) for name in ("refreshes_needed", "refreshes")
    )
    walked = walking * facts.keys_max / facts.tries  # keys a second
    by_call = upstream.budget is not None and upstream.budget.unit == "calls"
    each = facts.bytes_per_key * facts.tries
    return TypePlan(
        facts.name,
        facts.ttl_seconds,
        Freshness.of(served),
        needed + walking,
        calls + walking,
        needed + walking if by_call else (refreshes_needed + walked) * each,
        calls + walking if by_call else (refreshes + walked) * each,
        facts.open_share,
        facts.measured,
    )


# ── what to slow down ──

_FACTORS = (1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
_NICE_SECONDS = (
    1,
    2,
    5,
    10,
    15,
    20,
    30,
    45,
    60,
    90,
    120,
    180,
    300,
    600,
    900,
    1200,
    1800,
    2700,
    3600,
    5400,
    7200,
    10800,
    14400,
    21600,
    43200,
    86400,
)
_WORTH = 0.05  # of the calls needed, or of the units: less is not worth naming
_ADVICE_MAX = 5
_ALL = 0.98  # of what could be fresh: enough


def _advise(
    found: UpstreamPlan, upstream: UpstreamFacts, types: dict[str, TypeFacts], groups: Sequence[Group]
) -> tuple[Advice, ...]:
    """For each type that costs much: the least that is enough, or twice its time to live.

    The greatest gain first.
    """
    advice = []
    for one in found.types[:_ADVICE_MAX]:
        if max(_share(one.calls_needed, found.calls_needed), _share(one.units_needed, found.units_needed)) < _WORTH:
            continue
        advice += _slower_type(found, upstream, types, groups, one)
        advice += _no_own_ttl(found, upstream, types, groups, one)
    advice.sort(key=lambda one: (one.share_fresh[0] - one.share_fresh[1], -one.saves_calls))
    return tuple(advice[:_ADVICE_MAX])


def _slower_type(
    found: UpstreamPlan, upstream: UpstreamFacts, types: dict[str, TypeFacts], groups: Sequence[Group], one: TypePlan
) -> list[Advice]:
    tried: dict[float, Advice] = {}
    for factor in _FACTORS:
        ttl = _nice(one.ttl_seconds * factor)
        slowed = [
            replace(g, ttl_seconds=ttl) if g.type == one.type and not g.own_ttl and g.state == "kept" else g
            for g in groups
        ]
        after = _possible(upstream, types, slowed)
        tried[ttl] = _gain(found, after, one.type, "ttl", (one.ttl_seconds, ttl))
        if not after.short or (after.freshness.share_fresh >= _ALL and after.budget is None):
            return [tried[ttl]]
    twice = tried[_nice(one.ttl_seconds * 2)]
    return [twice] if twice.saves_calls > 0 else []


def _no_own_ttl(
    found: UpstreamPlan, upstream: UpstreamFacts, types: dict[str, TypeFacts], groups: Sequence[Group], one: TypePlan
) -> list[Advice]:
    own = [
        g for g in groups if g.type == one.type and g.own_ttl and g.state == "kept" and g.ttl_seconds < one.ttl_seconds
    ]
    if not own:
        return []
    given_up = [replace(g, ttl_seconds=one.ttl_seconds) if g in own else g for g in groups]
    shortest = min(g.ttl_seconds for g in own)
    gain = _gain(found, _possible(upstream, types, given_up), one.type, "own_ttl", (shortest, one.ttl_seconds))
    return [gain] if _share(gain.saves_calls, found.calls_needed) >= _WORTH else []


def _gain(before: UpstreamPlan, after: UpstreamPlan, name: str, what: str, ttl: tuple[float, float]) -> Advice:
    ends = tuple(None if one.budget is None else one.budget.ends_in_seconds for one in (before, after))
    return Advice(
        name,
        what,
        *ttl,
        before.calls_needed - after.calls_needed,
        (before.freshness.share_fresh, after.freshness.share_fresh),
        (ends[0], ends[1]),
    )


def _nice(seconds: float) -> float:
    """The next length of time that people would write down."""
    for nice in _NICE_SECONDS:
        if nice >= seconds * 0.999:
            return float(nice)
    return float(-(-seconds // 86_400) * 86_400)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
