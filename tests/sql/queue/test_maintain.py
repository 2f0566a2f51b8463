"""maintain: one turn for the whole fleet, by whoever comes first."""

from __future__ import annotations

from tests.support.queue_sql import QueueSession

MAINTAIN = "SELECT * FROM livewell.maintain(%s, 1, 0)"
NOTHING = (False, 0, 0, 0, 0)


def started(queue: QueueSession) -> int:
    """The tick exists: the very first call only makes it."""
    queue.freeze()
    assert queue.rows(MAINTAIN, 0) == [NOTHING]
    return queue.steady()


def test_it_promotes_buries_and_takes_back(queue: QueueSession) -> None:
    """And says how many of each."""
    undertaker = started(queue)
    queue.enqueue(2, delay_seconds=1)
    queue.enqueue(4)
    worker, hung = queue.register(), queue.register()
    queue.claim(worker, 3)
    queue.renew(hung, *queue.claim(hung, 1), timeout=1)
    queue.advance(2)
    queue.expire(worker)

    assert queue.rows(MAINTAIN, undertaker) == [(True, 2, 1, 3, 1)]


def test_within_the_interval_it_runs_once_for_all(queue: QueueSession, other: QueueSession) -> None:
    """The next turn is a second later, whoever takes it."""
    worker = started(queue)

    assert queue.rows(MAINTAIN, worker)[0][0] is True
    assert other.rows(MAINTAIN, worker) == [NOTHING]
    queue.advance(1)
    assert other.rows(MAINTAIN, worker)[0][0] is True
    assert queue.rows("SELECT n, last_worker FROM livewell.tick") == [(2, worker)]


def test_nobody_waits_for_a_turn_under_way(queue: QueueSession, other: QueueSession) -> None:
    """The second one is told at once that it is not its turn."""
    worker = started(queue)
    other.rows("SET lock_timeout = '1s'")
    with queue.connection.transaction():
        assert queue.rows(MAINTAIN, worker)[0][0] is True
        assert other.rows(MAINTAIN, worker) == [NOTHING]


def test_a_turn_that_fails_leaves_the_tick_due(queue: QueueSession) -> None:
    """Rolled back with everything it did."""
    worker = started(queue)
    with queue.connection.transaction(force_rollback=True):
        assert queue.rows(MAINTAIN, worker)[0][0] is True

    assert queue.rows(MAINTAIN, worker)[0][0] is True
