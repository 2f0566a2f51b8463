"""The plan (X4) against the simulation of the due check.

The same keys, viewers and calls, played in virtual time, end where the arithmetic says.

The policy is the one that tests/model/test_refresh_fairness.py compares with the SQL, page and all.
Groups are cut as livewell.plan_state() cuts them.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from livewell.refresh.plan.demand import Freshness, serve
from livewell.refresh.plan.facts import Group, TypeFacts, UpstreamFacts
from tests.model.test_refresh_fairness import Key, by_viewers_and_waiting

WITHIN = 0.10


@dataclass(frozen=True, slots=True)
class Day:
    """What is played."""

    keys: int
    viewers_of_first: int  # the n-th key has this / n viewers, at least one
    ttl: float
    calls_per_second: int
    seconds: int
    step: int

    @property
    def wanted(self) -> float:
        return self.keys / self.ttl


@dataclass(frozen=True, slots=True)
class Seen:
    """Shares of the time after the warm-up, and calls a second."""

    share_fresh: float
    viewers_fresh: float
    calls: float


def watched(day: Day) -> list[Key]:
    """Viewers as they are in life: few keys have many."""
    return [Key(f"K{n}", min(1000, max(1, day.viewers_of_first // n)), 0.0) for n in range(1, day.keys + 1)]


def play(day: Day, keys: Sequence[Key]) -> Seen:
    """The due check in virtual time; the first quarter is not counted."""
    warm, calls = day.seconds // 4, 0
    for now in range(0, day.seconds, day.step):
        due = sorted((key for key in keys if key.due_at <= now), key=lambda key: key.due_at)
        for key in by_viewers_and_waiting(due, now, day.calls_per_second * day.step):
            was_fresh_until = key.due_at
            key.due_at = now + day.ttl
            if now >= warm:
                calls += 1
                key.fresh += min(day.ttl, day.seconds - now)
            elif key.due_at > warm:
                key.fresh += key.due_at - max(warm, was_fresh_until)
    span = day.seconds - warm
    return Seen(
        sum(key.fresh for key in keys) / (len(keys) * span),
        sum(key.viewers * key.fresh for key in keys) / (sum(key.viewers for key in keys) * span),
        calls / span,
    )


def foreseen(day: Day, keys: Sequence[Key]) -> Seen:
    """By the plan, from groups as the database gives them."""
    alike: defaultdict[int, list[Key]] = defaultdict(list)
    for key in keys:
        alike[math.floor(math.log(key.viewers) / math.log(1.2))].append(key)
    groups = [
        Group("api", "quote", 0, "kept", False, day.ttl, len(some), sum(key.viewers for key in some), float(len(some)))
        for some in alike.values()
    ]
    served = serve(
        UpstreamFacts("api", float(day.calls_per_second)), {"quote": TypeFacts("quote", "api", day.ttl)}, groups
    )
    freshness = Freshness.of(served)
    return Seen(freshness.share_fresh, freshness.viewers_fresh, sum(one.calls for one in served))


DAYS = {
    "half of what is needed is there, a thousand keys": Day(1000, 300, 60.0, 8, 12_000, 1),
    "as much as is needed": Day(1000, 300, 50.0, 20, 6_000, 1),
    "twice as much as is needed": Day(1000, 300, 100.0, 20, 6_000, 1),
    "a sixteenth, ten thousand keys": Day(10_000, 3000, 60.0, 10, 6_000, 2),
    "a fifth, everybody has one viewer": Day(3000, 1, 60.0, 10, 12_000, 10),
}


@pytest.mark.parametrize("name", DAYS)
def test_the_plan_foresees_what_the_simulation_shows(name: str) -> None:
    """Share of keys, share of viewers and calls within a tenth. Run with -s for the figures."""
    seed = random.randrange(1 << 32)
    random.seed(seed)
    day = DAYS[name]
    keys = watched(day)
    expected = foreseen(day, keys)

    seen = play(day, keys)

    print(f"\nseed {seed}; {name}: {day.wanted:.0f} calls a second wanted, {day.calls_per_second} had")
    for what in ("share_fresh", "viewers_fresh", "calls"):
        foretold, shown = getattr(expected, what), getattr(seen, what)
        print(f"    {what:14} foreseen {foretold:8.3f}   seen {shown:8.3f}   ratio {foretold / shown:.3f}")
        assert foretold == pytest.approx(shown, rel=WITHIN), (seed, what)
