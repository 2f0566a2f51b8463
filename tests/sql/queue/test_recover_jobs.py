"""recover_jobs: whose lease is over, whose deadline is over, and what becomes of it.

Who may bury is in tests/races/test_outage.py.
"""

from __future__ import annotations

import pytest

from tests.support.queue_sql import QueueSession


@pytest.fixture(autouse=True)
def frozen(queue: QueueSession) -> None:
    queue.freeze()


def test_the_jobs_of_a_buried_worker_are_ready_and_the_loss_is_counted(queue: QueueSession) -> None:
    """Losing a worker is not an attempt."""
    jobs = queue.enqueue(3)
    worker, undertaker = queue.register(), queue.steady()
    queue.claim(worker)
    queue.expire(worker)

    assert queue.recover(undertaker) == (1, 3, 0)
    assert queue.states(jobs) == ["ready"] * 3
    assert queue.rows("SELECT DISTINCT attempt, lost, worker, last_error FROM livewell.job") == [
        (0, 1, None, "its worker died or froze while holding it")
    ]


def test_living_workers_keep_everything(queue: QueueSession) -> None:
    """Also a second before the end of their lease."""
    queue.enqueue()
    worker, undertaker = queue.register(lease=45), queue.steady()
    queue.claim(worker)
    queue.advance(14)
    queue.renew(undertaker)

    assert queue.recover(undertaker) == (0, 0, 0)


def test_jobs_without_a_worker_row_are_found_by_anybody(queue: QueueSession) -> None:
    """However it vanished, and whoever asks: taking back needs no calm, burying does."""
    job = queue.enqueue()[0]
    worker = queue.register()
    queue.claim(worker)
    queue.rows("DELETE FROM livewell.worker")

    assert queue.recover(0) == (0, 1, 0)
    assert queue.state(job) == "ready"


def test_every_holder_is_looked_at(queue: QueueSession) -> None:
    """Dead and living ones, in any order of numbers."""
    workers = [queue.register() for _ in range(5)]
    for worker in workers:
        queue.enqueue(2)
        queue.claim(worker, 2)
    queue.rows("DELETE FROM livewell.worker WHERE id = ANY (%s)", [workers[0], workers[2], workers[4]])

    assert queue.recover(workers[1]) == (0, 6, 0)
    assert sorted(queue.column("SELECT DISTINCT worker FROM livewell.job WHERE state = 'running'")) == [
        workers[1],
        workers[3],
    ]


def test_the_number_taken_back_at_once_is_bounded(queue: QueueSession) -> None:
    """The rest follows at the next turn."""
    queue.enqueue(5)
    queue.claim(queue.register())
    queue.rows("DELETE FROM livewell.worker")

    assert [queue.recover(0, limit=2)[1] for _ in range(4)] == [2, 2, 1, 0]


def test_a_job_lost_too_often_is_a_dead_letter(queue: QueueSession) -> None:
    """At the bound of its queue, with the reason."""
    job = queue.enqueue()[0]
    for _ in range(5):
        queue.claim(queue.register(), empty=True)
        queue.rows("DELETE FROM livewell.worker")
        queue.recover(0)

    assert queue.dead(job, "reason", "lost", "error") == ("lost", 5, "its worker died or froze while holding it")


def test_a_lost_job_that_was_to_be_cancelled_is(queue: QueueSession) -> None:
    """Nobody is left to be asked."""
    job = queue.enqueue()[0]
    queue.claim(queue.register())
    queue.cancel(job)
    queue.rows("DELETE FROM livewell.worker")
    queue.recover(0)

    assert queue.state(job) == "cancelled"


def test_a_job_past_its_deadline_and_grace_is_taken_from_a_living_worker(queue: QueueSession) -> None:
    """It counts as an attempt, and its holder is fenced."""
    job = queue.enqueue()[0]
    worker = queue.register()
    claim = queue.claim(worker)[0]
    queue.renew(worker, claim, timeout=30)
    queue.advance(40)
    assert queue.recover(worker, grace=10) == (0, 0, 0)
    queue.advance(1)
    assert queue.recover(worker, grace=10) == (0, 0, 1)

    row = queue.job(job, "state::text", "attempt", "lost", "last_error")
    assert row == ("delayed", 1, 0, "ran past its deadline and did not stop")
    assert queue.finish(claim) == [(claim.id, claim.fence)]


def test_a_job_that_hangs_every_time_is_a_dead_letter(queue: QueueSession) -> None:
    """Its attempts are bounded like those of any failure."""
    job = queue.enqueue(max_attempts=1)[0]
    worker = queue.register()
    queue.renew(worker, queue.claim(worker)[0], timeout=1)
    queue.advance(2)
    queue.recover(worker)

    assert queue.dead(job, "reason", "attempt") == ("attempts", 1)


def test_a_job_that_is_lost_and_late_is_taken_back_once(queue: QueueSession) -> None:
    """As lost: it is not known to hang."""
    worker = queue.register()
    queue.enqueue()
    queue.renew(worker, queue.claim(worker)[0], timeout=1)
    queue.advance(60)
    queue.rows("DELETE FROM livewell.worker")

    assert queue.recover(0) == (0, 1, 0)
