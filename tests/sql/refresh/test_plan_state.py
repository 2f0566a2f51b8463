"""plan_state: demand, costs and limits as they are in the tables, and what the plan makes of them (X4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from livewell.refresh.plan.demand import UpstreamPlan, plan
from livewell.refresh.plan.facts import Facts, read_facts
from tests.support.refresh_sql import RefreshSession


def facts(refresh: RefreshSession) -> Facts:
    return read_facts(refresh.value("SELECT livewell.plan_state()"))


def planned(refresh: RefreshSession) -> UpstreamPlan:
    [found] = plan(facts(refresh))
    return found


def watch(refresh: RefreshSession, *keys: str, users: int = 1, of: str = "quote") -> None:
    for _ in range(users):
        refresh.subscribe(refresh.open(), *keys, of=of)


def keep(refresh: RefreshSession, *keys: str, ago: float = 0, **columns: Any) -> None:
    """They were checked so long ago, all in one call."""
    at = refresh.now() - timedelta(seconds=ago)
    for key in keys:
        refresh.keep(key, fetched_at=at, checked_at=at, source_at=at, due_at=refresh.now(), **columns)


def test_an_empty_database_has_a_plan(refresh: RefreshSession) -> None:
    """Nothing is watched: nothing is needed, and nothing is short."""
    found = planned(refresh)
    assert (found.calls_needed, found.freshness.keys, found.freshness.share_fresh, found.short) == (0, 0, 1.0, False)


def test_watched_keys_are_grouped_by_time_to_live_and_viewers(refresh: RefreshSession) -> None:
    """Two users are two viewers, two tabs of one are one, a ghost is none."""
    refresh.freeze()
    keep(refresh, "A", "B", "C")
    watch(refresh, "A", users=2)
    watch(refresh, "B", "C")
    for _ in range(2):
        refresh.subscribe(refresh.open("anna"), "A", user="anna")
    refresh.rows("SELECT livewell.set_ttl('quote', 'C', '5 seconds')")
    ghost = refresh.open()
    refresh.subscribe(ghost, "D")
    refresh.rows(
        "UPDATE livewell.viewer_session SET seen_at = seen_at - interval '6 minutes' WHERE id = "
        "livewell.session_hash(%s)",
        ghost,
    )

    groups = sorted((g.keys, g.viewers, g.ttl_seconds, g.own_ttl) for g in facts(refresh).groups)
    assert groups == [(1, 1, 5, True), (1, 1, 60, False), (1, 3, 60, False)]
    assert abs(planned(refresh).calls_needed * 60 - (2 * 60 / 60.1 + 60 / 5.1)) < 0.01


def test_keys_that_came_by_one_call_come_by_one_call_again(refresh: RefreshSession) -> None:
    """Of a type with a batch endpoint: as many calls as there are different checks."""
    refresh.freeze()
    refresh.type("many", keys_max=50)
    keys = [f"K{n}" for n in range(30)]
    keep(refresh, *keys[:20], of="many", ago=10)
    keep(refresh, *keys[20:], of="many", ago=20)
    watch(refresh, *keys, of="many")

    [group] = facts(refresh).groups
    assert (group.keys, round(group.calls, 6)) == (30, 2)
    assert abs(planned(refresh).calls_needed * 60 - 2 * 60 / 60.1) < 0.01


def test_what_is_missing_failing_or_stopped_is_told_apart(refresh: RefreshSession) -> None:
    """A missing key is asked again after its negative time to live.

    What is backed off or paused costs nothing, and is not fresh.
    """
    refresh.freeze()
    keep(refresh, "A")
    keep(refresh, "B", missing=True)
    keep(refresh, "C", retry_at=refresh.now() + timedelta(minutes=5), failures=1)
    watch(refresh, "A", "B", "C")
    states = {g.state: (g.keys, g.ttl_seconds) for g in facts(refresh).groups}
    assert states == {"kept": (1, 60), "missing": (1, 3600), "failing": (1, 60)}
    assert abs(planned(refresh).freshness.share_fresh - 1 / 3) < 0.01

    refresh.rows("SELECT livewell.pause_type('quote', true)")
    assert {g.state for g in facts(refresh).groups} == {"stopped"}
    assert planned(refresh).calls_needed == 0


def test_costs_are_those_that_were_counted(refresh: RefreshSession) -> None:
    """Bytes for each answer, and answers for each that was good; until then the file's estimate."""
    assert (facts(refresh).types[0].bytes_per_key, facts(refresh).types[0].measured) == (700, False)
    refresh.rows(
        "INSERT INTO livewell.refresh_count (hour, data_type, outcome, n, wire_bytes, decoded_bytes)"
        " SELECT date_trunc('hour', livewell.now()), 'quote', o.outcome, o.n, o.wire, 10 FROM (VALUES "
        "('stored', 8, 4000), ('unchanged', 0, 0), ('schema', 2, 1000)) AS o (outcome, n, wire)"
    )
    [found] = facts(refresh).types
    assert (found.bytes_per_key, found.tries, found.measured) == (500, 1.25, True)


def test_limits_are_those_of_all_credentials(refresh: RefreshSession) -> None:
    """A limit that was learnt counts; so does what was used.

    Nothing was measured yet: a call is taken to be in flight for no time.
    """
    refresh.limiter(
        "api",
        credentials=["one", "two"],
        rate_calls=300,
        rate_seconds=60,
        permit_seconds=1,
        budget_units=1000,
        budget_unit="bytes",
        budget_seconds=86_400,
    )
    refresh.rows("UPDATE livewell.limiter_credential SET learnt_calls = 100 WHERE name = 'two'")
    refresh.rows(
        "INSERT INTO livewell.limiter_usage (limiter, credential, since, units, calls) SELECT 'api', 'one', "
        "date_trunc('hour', livewell.now(), 'UTC') - n * interval '1 hour', 10, 1 FROM generate_series(0, 3) AS n"
    )
    [found] = facts(refresh).upstreams
    assert found.calls_per_second == 400 / 60
    assert found.budget is not None
    assert (found.budget.units, found.budget.used) == (2000, ((3, 10), (2, 10), (1, 10), (0, 10)))


def test_a_daily_budget_knows_its_reset(refresh: RefreshSession) -> None:
    """How long until midnight in its zone."""
    refresh.limiter("api", budget_units=5000, budget_unit="calls", budget_resets="00:00", budget_zone="UTC")
    [found] = facts(refresh).upstreams
    assert found.budget is not None
    assert found.budget.reset_seconds is not None
    now = refresh.now()
    assert abs(found.budget.reset_seconds - (86_400 - now.hour * 3600 - now.minute * 60 - now.second)) < 5


def test_a_scheduled_type_counts_its_walks(refresh: RefreshSession) -> None:
    """240 keys every hour are four calls a minute, on the background lane."""
    refresh.type("daily", strategy="scheduled", cron="0 * * * *", zone="UTC")
    refresh.rows("SELECT livewell.add_universe('daily', ARRAY(SELECT 'K' || n FROM generate_series(1, 240) AS n))")
    assert abs(planned(refresh).calls_needed * 60 - 4) < 0.1


def test_a_type_that_follows_an_exchange_costs_while_it_is_open(refresh: RefreshSession) -> None:
    """About 6.5 of 24 hours on about 21 of 30 days."""
    refresh.sessions()
    refresh.rows("UPDATE livewell.data_type SET rule = 'session', calendar = 'XNYS'")
    refresh.rows("UPDATE livewell_test.clock SET frozen_at = '2026-07-20 12:00+00'")
    assert 0.17 < facts(refresh).types[0].open_share < 0.21


def test_prefetched_keys_are_background_work(refresh: RefreshSession) -> None:
    """Wanted within a day, watched by nobody now."""
    refresh.rows("UPDATE livewell.data_type SET prefetch = true")
    keep(refresh, "A", "B", wanted_at=refresh.now())
    watch(refresh, "B")
    assert sorted((g.lane, g.keys, g.viewers) for g in facts(refresh).groups) == [(0, 1, 1), (1, 1, 0)]
