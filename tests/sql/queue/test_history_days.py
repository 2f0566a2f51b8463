"""ensure_history_days and drop_history_day.

There is always a partition for today, and old ones go.
"""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from livewell.db.scratch import TestClock
from tests.support.queue_sql import QueueSession

DAYS = (
    "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = "
    "'livewell.job_history'::regclass ORDER BY 1"
)
DAY = 86400


def names(queue: QueueSession, *offsets: int) -> list[str]:
    today = queue.value("SELECT (livewell.now() AT TIME ZONE 'UTC')::date")
    return [f"job_history_{today + timedelta(days=offset):%Y%m%d}" for offset in offsets]


def test_days_are_made_ahead_dropped_behind_and_never_twice(livewell_dsn: str) -> None:
    """One story, as time goes by, whatever the zone of the session."""
    with QueueSession(livewell_dsn) as queue:
        clock = TestClock(livewell_dsn)
        queue.rows("SET timezone = 'Pacific/Kiritimati'")
        assert queue.column(DAYS) == names(queue, *range(15))
        assert queue.value("SELECT livewell.ensure_history_days(14)") == 0

        first = names(queue, 0, 1, 2)
        clock._run("UPDATE livewell_test.clock SET ahead = interval '3 days'")
        assert queue.value("SELECT livewell.ensure_history_days(14)") == 3
        assert queue.column(DAYS) == [*first, *names(queue, *range(15))]

        assert queue.value("SELECT livewell.drop_history_day(3)") is None
        dropped = [queue.value("SELECT livewell.drop_history_day(1)") for _ in range(3)]
        assert dropped == [*first[:2], None]
        assert queue.column(DAYS) == names(queue, -1, *range(15))


def test_a_partition_takes_the_jobs_of_its_day_and_has_the_index(livewell_dsn: str) -> None:
    """The first and the last microsecond of a UTC day."""
    with QueueSession(livewell_dsn) as queue:
        day = names(queue, 1)[0]
        midnight = queue.value("SELECT date_trunc('day', livewell.now(), 'UTC') + interval '1 day'")
        for moment in (midnight, midnight + timedelta(days=1, microseconds=-1)):
            queue.rows(
                "INSERT INTO livewell.job_history (id, fence, created_at, finished_at, attempt, outcome, queue, "
                "kind) VALUES (1, 1, %s, %s, 1, 'succeeded', 'q', 'k')",
                moment,
                moment,
            )

        assert queue.value(f"SELECT count(*) FROM livewell.{day}") == 2
        assert queue.value("SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass", f"livewell.{day}") == 1


def test_less_than_a_day_of_history_is_refused(queue: QueueSession) -> None:
    """Nobody drops today."""
    with pytest.raises(psycopg.Error, match="at least 1 day, not 0") as caught:
        queue.rows("SELECT livewell.drop_history_day(0)")

    assert caught.value.sqlstate == "LW003"


def test_the_days_ahead_are_bounded(livewell_dsn: str) -> None:
    """Sixty at most, tomorrow at least."""
    with QueueSession(livewell_dsn) as queue:
        assert queue.value("SELECT livewell.ensure_history_days(-5)") == 0
        assert queue.value("SELECT livewell.ensure_history_days(100000)") == 46


def test_two_makers_at_once_do_not_collide(livewell_dsn: str) -> None:
    """The second leaves the days to the first, without waiting and without an error."""
    with QueueSession(livewell_dsn) as one, QueueSession(livewell_dsn) as two:
        with one.connection.transaction():
            assert one.value("SELECT livewell.ensure_history_days(20)") == 6
            assert two.value("SELECT livewell.ensure_history_days(20)") == 0
        assert two.value("SELECT livewell.ensure_history_days(20)") == 0


def test_whoever_comes_second_waits_for_nobody_and_fails_at_nothing(livewell_dsn: str) -> None:
    """Also if it wants more days: it leaves them to the first, or to the next hour.

    Seen to fail with a lock for each day (55P03: one of two workers that started at once gave up).
    """
    with QueueSession(livewell_dsn) as one, QueueSession(livewell_dsn) as two:
        with one.connection.transaction():
            assert one.value("SELECT livewell.ensure_history_days(20)") == 6
            assert two.value("SELECT livewell.ensure_history_days(25)") == 0
        assert two.value("SELECT livewell.ensure_history_days(25)") == 5
