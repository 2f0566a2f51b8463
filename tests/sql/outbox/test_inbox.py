"""see_event: a consumer sees an event for the first time once, for as many days as the inbox keeps."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from livewell.db.scratch import TestClock
from tests.support.queue_sql import QueueSession

DAY = 86_400
SEE = "SELECT livewell.see_event(%s, %s)"


@pytest.fixture
def sql(livewell_dsn: str) -> Iterator[QueueSession]:
    with QueueSession(livewell_dsn) as session:
        yield session


def test_each_consumer_sees_an_event_for_the_first_time_once(sql: QueueSession) -> None:
    """Consumers and ids do not run into each other, however they are cut."""
    pairs = [("billing", "e-1"), ("mail", "e-1"), ("billing", "e-2"), ("billinge", "-1"), ("billing\x1f", "e-1")]
    assert [sql.value(SEE, *pair) for pair in pairs] == [True] * len(pairs)
    assert [sql.value(SEE, *pair) for pair in pairs] == [False] * len(pairs)


def test_a_mark_that_is_rolled_back_was_never_there(sql: QueueSession) -> None:
    """The next delivery is the first."""
    with sql.connection.transaction(force_rollback=True):
        assert sql.value(SEE, "billing", "e-1") is True
    assert sql.value(SEE, "billing", "e-1") is True


def test_it_remembers_over_days_and_forgets_with_the_partition(sql: QueueSession, livewell_clock: TestClock) -> None:
    """Fourteen days by default; then the day is dropped, and the event would be new."""
    assert sql.value(SEE, "billing", "e-1") is True
    livewell_clock.advance(13 * DAY)
    while sql.value("SELECT livewell.drop_event_day(7, 14)"):
        pass
    assert sql.value(SEE, "billing", "e-1") is False
    livewell_clock.advance(3 * DAY)
    while sql.value("SELECT livewell.drop_event_day(7, 14)"):
        pass
    assert sql.value(SEE, "billing", "e-1") is True


@pytest.mark.parametrize(
    ("consumer", "event_id"),
    [("", "e"), (None, "e"), ("c" * 201, "e"), ("c", ""), ("c", None), ("c", "é" * 257)],
)
def test_texts_are_bounded(sql: QueueSession, consumer: str | None, event_id: str | None) -> None:
    """In bytes, with what is allowed."""
    with pytest.raises(psycopg.Error, match=r"\(1 to 200 are allowed\).*\(1 to 512\)") as caught:
        sql.value(SEE, consumer, event_id)
    assert caught.value.sqlstate == "LW003"
    assert sql.value(SEE, "c" * 200, "é" * 256) is True


def test_repeatable_read_is_refused(sql: QueueSession) -> None:
    """With what to use instead."""
    with sql.connection.transaction():
        sql.rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(psycopg.Error, match="READ COMMITTED"):
            sql.value(SEE, "billing", "e-1")


def test_looking_reads_an_index_of_each_day_and_no_table(sql: QueueSession) -> None:
    """A month of partitions is some twenty look-ups."""
    sql.rows("SET enable_seqscan = off")  # the days are empty here, so the planner would read them
    plan = "\n".join(
        str(row[0])
        for row in sql.rows("EXPLAIN SELECT FROM livewell.inbox i WHERE i.event_id = 'e-1' AND i.consumer = 'billing'")
    )
    assert "Seq Scan" not in plan
    assert plan.count("_pkey") + plan.count("_idx") >= 16
