"""The arithmetic of a plan (X4): what fits, who waits, when the budget ends, what to slow down."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from livewell.refresh.plan.demand import UpstreamPlan, plan, serve
from livewell.refresh.plan.facts import BudgetFacts, Facts, Group, TypeFacts, UpstreamFacts, walks_per_day
from livewell.refresh.plan.report import Plan, advice_words, document, not_fresh_words, quantity, span

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
QUOTE = TypeFacts("quote", "api", 60.0, bytes_per_key=1000.0)
HOUR = 3600.0


def group(keys: int = 100, viewers: int | None = None, **fields: object) -> Group:
    made = Group("api", "quote", 0, "kept", False, 60.0, keys, keys if viewers is None else viewers, float(keys))
    return replace(made, **fields)  # type: ignore[arg-type]  # fields of a group


def planned(
    *groups: Group, calls: float | None = 1.0, types: tuple[TypeFacts, ...] = (QUOTE,), **limits: object
) -> UpstreamPlan:
    [found] = plan(Facts(NOW, groups, types, (UpstreamFacts("api", calls, **limits),)))  # type: ignore[arg-type]  # limits are fields
    return found


def test_with_enough_calls_nearly_everything_is_fresh() -> None:
    """30 keys of a minute need half a call a second; one is there."""
    found = planned(group(30))
    assert found.freshness.share_fresh > 0.99
    assert found.calls == pytest.approx(0.5, rel=0.01)
    assert not found.short
    assert found.advice == ()


def test_with_half_the_calls_half_is_fresh_and_all_calls_are_used() -> None:
    """120 keys with one viewer each and one call a second: each is refreshed every two minutes."""
    found = planned(group(120))
    assert found.freshness.share_fresh == pytest.approx(0.5, rel=0.01)
    assert found.freshness.age_seconds == pytest.approx(60, rel=0.01)
    assert found.calls == pytest.approx(1.0)
    assert found.short


def test_a_plan_says_why_not_everything_can_be_fresh() -> None:
    """ "74 % can be fresh" beside 13 of 58 calls needed was a riddle: 26 % of the keys failed.

    The parts are all that is missing.
    """
    found = planned(group(74), group(20, state="failing"), group(6, state="stopped"), calls=100.0)
    assert not found.short
    assert [why for why, _ in found.not_fresh] == ["failing", "stopped", "calls"]
    assert sum(share for _, share in found.not_fresh) == pytest.approx(1 - found.freshness.share_fresh)
    assert (
        not_fresh_words(found)
        == "20 % fail, and are asked again later (livewell doctor names them); 6 % are paused or parked"
    )


def test_a_limit_that_is_too_low_is_named_as_the_reason() -> None:
    """And not that calls take time."""
    assert not_fresh_words(planned(group(120))) == "50 % wait for the call limit"


def test_those_with_more_viewers_are_served_first() -> None:
    """And what viewers see is fresher than the average key."""
    found = planned(group(10, 1000), group(190))
    assert found.freshness.viewers_fresh > 0.85
    assert found.freshness.share_fresh < 0.35


def test_calls_that_carry_many_keys_fill_up_before_anybody_waits() -> None:
    """A hundred calls a round become two of fifty."""
    many = replace(QUOTE, keys_max=50)
    found = planned(group(100), calls=0.5, types=(many,))
    assert found.freshness.share_fresh > 0.95
    assert found.calls == pytest.approx(0.5, rel=0.01)


def test_background_work_has_what_people_leave_of_the_rate_less_its_reserve() -> None:
    """Lane 0 uses half.

    The reserve is a tenth, so four tenths are left of the one call a second.
    """
    served = serve(UpstreamFacts("api", 1.0, 0.1), {"quote": QUOTE}, [group(30), group(60, lane=1)])
    assert served[0].share_fresh > 0.99
    assert served[1].calls == pytest.approx(0.4, rel=0.01)
    assert served[1].share_fresh == pytest.approx(0.4, rel=0.01)


def test_without_a_limit_everything_is_fresh() -> None:
    """A million keys."""
    found = planned(group(1_000_000), calls=None)
    assert (found.calls_allowed, found.short) == (None, False)
    assert found.freshness.share_fresh > 0.99


def test_no_calls_at_all_is_nothing_fresh() -> None:
    """A limit of nothing is no division by it."""
    found = planned(group(10), calls=0.0)
    assert (found.freshness.share_fresh, found.calls, found.freshness.age_seconds) == (0, 0, None)


@given(
    some.lists(
        some.tuples(
            some.integers(1, 5000),
            some.integers(0, 1000),
            some.floats(1, 1e6),
            some.integers(0, 1),
            some.integers(1, 50),
        ),
        min_size=1,
        max_size=12,
    ),
    some.floats(0.001, 1000),
    some.floats(0, 0.9),
)
def test_no_plan_uses_more_than_there_is(
    shapes: list[tuple[int, int, float, int, int]], calls: float, reserve: float
) -> None:
    """Whatever is watched, the plan never makes more calls than allowed.

    Shares are between nothing and all, and nobody is refreshed more often than their time to live
    asks.
    """
    types = {f"t{n}": replace(QUOTE, name=f"t{n}", keys_max=shape[4]) for n, shape in enumerate(shapes)}
    groups = [
        group(keys, keys * viewers, ttl_seconds=ttl, lane=lane, type=f"t{n}")
        for n, (keys, viewers, ttl, lane, _) in enumerate(shapes)
    ]
    served = serve(UpstreamFacts("api", calls, reserve), types, groups)

    assert sum(one.calls for one in served) <= calls * 1.0001
    assert all(0 <= one.share_fresh <= 1 for one in served)
    assert all(one.refreshes <= one.refreshes_needed * 1.0001 for one in served)


# ── the budget ──


def budget(used: float = 0.0, **fields: object) -> BudgetFacts:
    made = BudgetFacts("bytes", 100_000_000.0, 0.95, ((0.0, used),), 30 * 24 * HOUR)
    return replace(made, **fields)  # type: ignore[arg-type]  # fields of a budget


def test_the_day_the_budget_ends() -> None:
    """A thousand bytes a second of 100 MB, 95 % of which may be used: after 95,000 seconds."""
    found = planned(group(60), calls=None, budget=budget())
    assert found.budget is not None
    assert found.budget.ends_in_seconds == pytest.approx(95_000, rel=0.01)
    assert found.short


def test_a_budget_that_lasts_does_not_end() -> None:
    """Thirty days at this pace are less than there is."""
    found = planned(group(1, ttl_seconds=60.0), calls=None, budget=budget())
    assert found.budget is not None
    assert (found.budget.ends_in_seconds, found.short) == (None, False)


def test_what_was_used_leaves_the_span_before_it_is_needed_again() -> None:
    """90 MB of 29 days ago are gone tomorrow; 90 MB of today are not."""
    old = budget()
    light = group(3)  # 50 bytes a second, 130 MB in 30 days
    long_ago = planned(light, calls=None, budget=replace(old, used=((29 * 24.0, 90_000_000.0),))).budget
    today = planned(light, calls=None, budget=replace(old, used=((0.0, 90_000_000.0),))).budget
    assert long_ago is not None
    assert today is not None
    assert today.ends_in_seconds == pytest.approx(5_000_000 / 50, rel=0.05)
    assert (long_ago.ends_in_seconds or 0) > 20 * 24 * HOUR


def test_a_budget_that_is_used_up_ends_now() -> None:
    """At its stop, not at its end."""
    found = planned(group(1), calls=None, budget=budget(used=95_000_000.0)).budget
    assert found is not None
    assert found.ends_in_seconds == 0


def test_a_budget_by_the_day_ends_today_tomorrow_or_never() -> None:
    """5,000 calls a day with reset: at one call a second they last 79 minutes."""
    daily = BudgetFacts("calls", 5000.0, 0.95, ((0.0, 4000.0),), None, 600.0)
    ends = [
        found.budget.ends_in_seconds if found.budget else None
        for found in (planned(group(n), calls=None, budget=daily) for n in (90, 60, 3))
    ]
    assert ends[0] == pytest.approx(750 / 1.5, rel=0.01)
    assert ends[1] == pytest.approx(600 + 4750, rel=0.01)
    assert ends[2] is None


# ── what to slow down ──


def test_the_least_that_is_enough_is_advised() -> None:
    """120 calls a minute are needed and 60 are there: two minutes instead of one."""
    found = planned(group(120))
    [advice] = found.advice
    assert (advice.type, advice.what, advice.from_seconds, advice.to_seconds) == ("quote", "ttl", 60, 120)
    assert advice_words(advice) == "quote 1 min → 2 min saves 60 calls/min: share fresh 50 % → 100 %"


def test_keys_with_a_time_to_live_of_their_own_are_named() -> None:
    """Ten keys of five seconds cost as much as 120 of a minute."""
    found = planned(group(10, own_ttl=True, ttl_seconds=5.0), group(30))
    assert {advice.what for advice in found.advice} == {"ttl", "own_ttl"}
    assert found.advice[0].what == "own_ttl"
    assert found.advice[0].share_fresh[1] > 0.98


def test_what_hardly_costs_is_not_named() -> None:
    """A type with one call in a hundred."""
    news = TypeFacts("news", "api", 900.0)
    found = planned(group(120), group(10, type="news", ttl_seconds=900.0), types=(QUOTE, news))
    assert [advice.type for advice in found.advice] == ["quote"]
    assert [one.type for one in found.types] == ["quote", "news"]


def test_a_budget_that_ends_is_reason_to_slow_down() -> None:
    """The words say what becomes of it."""
    found = planned(group(60), calls=None, budget=budget())
    assert "the budget lasts" in advice_words(found.advice[0]) or "instead of" in advice_words(found.advice[0])


# ── words ──


def test_lengths_and_quantities_are_written_as_people_do() -> None:
    """One unit each."""
    assert [span(n) for n in (0.5, 5, 15, 60, 90, 150, 3600, 86_400, 95_000, 2_592_000)] == [
        "0.5 s", "5 s", "15 s", "1 min", "90 s", "2.5 min", "1 h", "1 d", "26 h", "30 d",
    ]  # fmt: skip
    assert [quantity(n, "bytes") for n in (12, 4_500, 7e6, 2e10)] == ["12 B", "4.5 kB", "7.0 MB", "20.0 GB"]
    assert quantity(5000, "calls") == "5,000 calls"


def test_the_document_has_every_figure_once() -> None:
    """And is plain values, for JSON."""
    found = document(Plan(NOW, (planned(group(120), budget=budget()),), False))
    [upstream] = found["upstreams"]
    assert (found["short"], upstream["calls_needed_per_minute"]) == (True, pytest.approx(120, rel=0.01))
    assert upstream["advice"][0]["words"].startswith("quote 1 min")


def test_walks_are_counted_over_a_week() -> None:
    """Hourly, weekdays only, monthly, and one that cannot be read."""
    assert walks_per_day("0 * * * *", "UTC", NOW) == pytest.approx(24)
    assert walks_per_day("0 2 * * 1-5", "Europe/Paris", NOW) == pytest.approx(5 / 7)
    assert walks_per_day("0 0 1 * *", "UTC", NOW) == pytest.approx(1 / 14.5)
    assert walks_per_day("* * * * *", "UTC", NOW) == pytest.approx(1440, rel=0.01)
    assert walks_per_day("61 * * * *", "UTC", NOW) == 0
