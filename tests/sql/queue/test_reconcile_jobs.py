"""reconcile_jobs: jobs we hold without knowing it go back; nothing else does."""

from __future__ import annotations

from tests.support.queue_sql import QueueSession


def test_what_is_known_stays_and_the_rest_goes_back(queue: QueueSession) -> None:
    """Neither an attempt nor a loss is counted."""
    jobs = queue.enqueue(3)
    worker = queue.register()
    known, *_ = queue.claim(worker)

    assert queue.reconcile(worker, known, mark=queue.mark()) == 2
    assert queue.states(jobs) == ["running", "ready", "ready"]
    assert queue.rows("SELECT DISTINCT attempt, lost FROM livewell.job WHERE state = 'ready'") == [(0, 0)]


def test_the_mark_is_included(queue: QueueSession) -> None:
    """It is a fence that existed before the claim in flight."""
    first, second = queue.enqueue(2)
    worker = queue.register()
    queue.claim(worker, 1)
    mark = queue.mark()
    queue.claim(worker, 1)

    assert queue.reconcile(worker, mark=mark) == 1
    assert queue.states([first, second]) == ["ready", "running"]


def test_the_jobs_of_others_are_left_alone(queue: QueueSession) -> None:
    """Whatever the mark."""
    queue.enqueue()
    owner, stranger = queue.register(), queue.register()
    queue.claim(owner)

    assert queue.reconcile(stranger, mark=queue.mark()) == 0


def test_nothing_unknown_is_nothing_to_do(queue: QueueSession) -> None:
    """The usual case."""
    queue.enqueue(2)
    worker = queue.register()

    assert queue.reconcile(worker, *queue.claim(worker), mark=queue.mark()) == 0


def test_a_job_that_was_to_be_cancelled_is(queue: QueueSession) -> None:
    """It was never started; now it never will be."""
    job = queue.enqueue()[0]
    worker = queue.register()
    queue.claim(worker)
    queue.cancel(job)
    queue.reconcile(worker, mark=queue.mark())

    assert queue.state(job) == "cancelled"
