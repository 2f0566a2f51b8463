"""Contract 9: scheduled work never materialises types × keys.

A walk takes a bounded page, remembers where it is, and goes on when there is room.

Broken once, and kept broken below: without the bound the whole universe becomes jobs at once.
Release 0.5.0 counted calls instead of jobs: a type with 50 keys a call queued all its 20,000 keys.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.refresh_sql import SINGLETON, RefreshSession
from tests.support.variants import variant

TYPES = ("income", "balance", "cash")
KEYS = 2500


def prepare(refresh: RefreshSession, **columns: Any) -> None:
    refresh.freeze()
    for name in TYPES:
        refresh.type(
            name,
            strategy="scheduled",
            cron="0 6 * * *",
            zone="UTC",
            ttl="30 days",
            **columns,
        )
    refresh.rows(
        "INSERT INTO livewell.universe (data_type, key, added_at) SELECT t, 'K' || lpad(n::text, 5, '0'), "
        "livewell.now() FROM unnest(%s::text[]) AS t, generate_series(1, %s) AS n",
        list(TYPES),
        KEYS,
    )
    for name in TYPES:
        refresh.begin_walk(name)


def walk(refresh: RefreshSession, name: str) -> str:
    """One page, as any holder would take it: everything it needs is in the database."""
    answer: str = refresh.value(
        "SELECT answer FROM livewell.dispatch_scheduled(%s, %s, %s, NULL)",
        SINGLETON,
        refresh.hold(),
        name,
    )
    return answer


def finish_all(refresh: RefreshSession) -> list[str]:
    """Everything that waits is done; answers what it was."""
    return [key for (key,) in refresh.rows("DELETE FROM livewell.job RETURNING unique_key")]


def test_at_most_a_thousand_wait_whatever_the_universe_holds(refresh: RefreshSession) -> None:
    """Three types of 2,500 keys each."""
    prepare(refresh)

    assert [walk(refresh, name) for name in TYPES * 3].count("walking") == 1
    assert refresh.value("SELECT count(*) FROM livewell.job") == 1000
    assert refresh.value("SELECT count(*) FROM livewell.ledger") == 1000


@pytest.mark.parametrize("keys_max", [1, 3, 50, 1000])
def test_jobs_are_counted_not_calls(refresh: RefreshSession, keys_max: int) -> None:
    """R19: fifty keys are one call and fifty jobs.

    Seen failing on 0.5.0: 2,940 jobs after three pages of keys_max = 50.
    """
    prepare(refresh, keys_max=keys_max)

    for name in TYPES * 2:
        walk(refresh, name)

    assert refresh.value("SELECT count(*) FROM livewell.job") == 1000


def test_what_failed_and_waits_for_its_next_attempt_is_counted(refresh: RefreshSession) -> None:
    """R19: or an upstream that fails would turn page after page into delayed jobs."""
    prepare(refresh, keys_max=50)
    walk(refresh, "income")
    refresh.rows("ALTER TABLE livewell.job DISABLE TRIGGER USER")  # as after a thousand failed attempts
    refresh.rows("UPDATE livewell.job SET state = 'delayed', run_at = livewell.now() + interval '5 minutes'")
    refresh.rows("ALTER TABLE livewell.job ENABLE TRIGGER USER")

    assert walk(refresh, "income") == "blocked"
    assert refresh.value("SELECT count(*) FROM livewell.job") == 1000


def test_a_pool_that_nobody_serves_is_bounded_and_stops_no_other_walk(refresh: RefreshSession) -> None:
    """R19: its jobs lie there, with a viewer's among them for so long that the queue is stalled.

    The walk of another pool goes on.
    """
    refresh.upstream(pools=["slow"])
    prepare(refresh, keys_max=50)
    refresh.rows("UPDATE livewell.data_type SET pool = 'slow' WHERE name = 'balance'")
    assert walk(refresh, "balance") == "walking"
    refresh.rows("UPDATE livewell.job SET lane = 0 WHERE unique_key = 'balance:K00001'")
    refresh.advance(60)

    assert [walk(refresh, name) for name in ("balance", "balance", "income")] == ["walking", "blocked", "walking"]
    assert refresh.rows("SELECT queue, count(*) FROM livewell.job WHERE lane = 1 GROUP BY queue ORDER BY queue") == [
        ("refresh.api", 1000),
        ("refresh.api.slow", 1000),
    ]


def test_a_walk_meets_every_key_once_through_any_number_of_restarts(refresh: RefreshSession) -> None:
    """The cursor is a column: nothing is sampled, nothing is missed, nothing is met twice."""
    prepare(refresh)
    met: list[str] = []
    answers = []
    for _ in range(5):
        answers.append(walk(refresh, "income"))
        met += finish_all(refresh)
        refresh.rows("UPDATE livewell.singleton SET expires_at = '-infinity'")  # another worker goes on

    assert answers == ["walking", "walking", "walked", "not_due", "not_due"]
    assert len(met) == len(set(met)) == KEYS


def test_keys_that_are_backed_off_inactive_or_done_are_passed_over(refresh: RefreshSession) -> None:
    """And so is what was checked since the walk was due."""
    prepare(refresh)
    refresh.rows("DELETE FROM livewell.universe WHERE key > 'K00004'")
    refresh.rows("UPDATE livewell.universe SET active = false WHERE key = 'K00001'")
    refresh.keep("K00002", of="income", failures=1, retry_at=refresh.value("SELECT livewell.now() + interval '1 hour'"))
    refresh.keep("K00003", of="income", fetched_at=refresh.now(), checked_at=refresh.now())

    assert walk(refresh, "income") == "walked"
    assert finish_all(refresh) == ["income:K00004"]


def test_without_the_bound_everything_is_queued(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    prepare(refresh)
    with variant(
        queue_dsn,
        "dispatch_scheduled",
        ("v_limit := least(p_most, 1000) - (", "v_limit := 1000000 - ("),
    ):
        for name in TYPES:
            walk(refresh, name)

    assert refresh.value("SELECT count(*) FROM livewell.job") == len(TYPES) * KEYS
