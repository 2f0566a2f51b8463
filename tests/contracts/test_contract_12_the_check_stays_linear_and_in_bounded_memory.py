"""Contract 12: the check stays linear and in bounded memory.

It reads what is due, in a bounded page, and counts a bounded number of viewers of each.

Counted in rows that were read, not in seconds: see tests/sql/refresh/test_plans.py for the indexes.
Broken once, and kept broken below: a page without a bound.
"""

from __future__ import annotations

import pytest

from tests.support.plans import PlanRecorder, rows_read
from tests.support.refresh_sql import RefreshSession
from tests.support.variants import variant

FILL = """
INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at)
SELECT 'quote', 'K' || n, 'api', livewell.now(), livewell.now() + CASE WHEN n <= %s THEN interval '-1 minute' ELSE interval '1 hour' END FROM generate_series(1, %s) AS n
"""
CHECK = "SELECT * FROM livewell.due_candidates('api', livewell.now(), {}, {}, 0)"


def read(refresh: RefreshSession, *, due: int, keys: int) -> int:
    """Rows of the ledger that one scan of a check touches, at most."""
    refresh.reset()
    refresh.rows(FILL, due, keys)
    recorder = PlanRecorder(refresh)
    return rows_read(recorder.plans(CHECK.format(4000, 500)), "ledger")


def test_it_reads_what_is_due_not_what_exists(refresh: RefreshSession) -> None:
    """Ten times the ledger, the same number due: the same number read."""
    assert [read(refresh, due=100, keys=keys) for keys in (1_000, 10_000)] == [100, 100]


@pytest.mark.parametrize("due", [100, 3000])
def test_a_page_is_bounded(refresh: RefreshSession, due: int) -> None:
    """However much is due, after an outage say."""
    refresh.rows(FILL, due, due)

    assert len(refresh.rows(CHECK.format(50, 20))) <= 90


def test_viewers_are_counted_up_to_a_bound(refresh: RefreshSession) -> None:
    """A key with 3,000 viewers costs no more than one with 1,000, and counts as 1,000."""
    refresh.keep("AAPL", due_at=refresh.now())
    refresh.rows(
        "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) SELECT gen_random_uuid(), "
        "livewell.now(), livewell.now(), 'u' || n FROM generate_series(1, 3000) AS n"
    )
    refresh.rows("INSERT INTO livewell.subscription SELECT id, 'quote', 'AAPL', user_id FROM livewell.viewer_session")
    recorder = PlanRecorder(refresh)

    plans = recorder.plans(CHECK.format(4000, 500))

    assert rows_read(plans, "subscription") == 1000
    assert refresh.viewers() == 1000


def test_one_user_alone_cannot_hide_the_others(refresh: RefreshSession) -> None:
    """A thousand tabs, the most one may have, came first; everybody else still counts."""
    refresh.keep("AAPL", due_at=refresh.now())
    insert = (
        "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) SELECT gen_random_uuid(), "
        "livewell.now(), livewell.now(), {} FROM generate_series(1, {}) AS n"
    )
    for user, n in (("'eve'", 1000), ("'u' || n", 500)):
        refresh.rows(insert.format(user, n))
        refresh.rows(
            "INSERT INTO livewell.subscription SELECT id, 'quote', 'AAPL', user_id FROM livewell.viewer_session "
            "ON CONFLICT DO NOTHING"
        )

    assert refresh.viewers() == 501


def test_a_page_without_a_bound_is_noticed(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    refresh.rows(FILL, 3000, 3000)
    with variant(queue_dsn, "due_candidates", ("LIMIT p_oldest", "LIMIT 1000000")):
        assert len(refresh.rows(CHECK.format(50, 20))) == 3000
