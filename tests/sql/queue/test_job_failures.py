"""note_failures, through settle_jobs, and show_failures: what went wrong in each attempt."""

from __future__ import annotations

from typing import Any

from tests.support.queue_sql import QueueSession

KEPT = 20


def failures(queue: QueueSession, job: int) -> list[dict[str, Any]]:
    return list(queue.value("SELECT livewell.show_failures(%s)", job))


def fail(queue: QueueSession, worker: int, outcome: str, error: str | None) -> None:
    for claim in queue.claim(worker, empty=True):  # who was lost once runs alone
        queue.settle(claim, outcome, error=error, delay_seconds=0)


def test_every_attempt_that_failed_is_kept_newest_first(queue: QueueSession) -> None:
    """Through retries, a lost worker and the last refusal; a job that is handed back did not fail."""
    [job] = queue.enqueue(max_attempts=9)
    worker = queue.register()
    for outcome, error in (("retry", "one"), ("released", None), ("lost", "gone"), ("retry", None), ("refused", "no")):
        fail(queue, worker, outcome, error)
    assert [(one["outcome"], one["error"]) for one in failures(queue, job)] == [
        ("refused", "no"),
        ("lost", "gone"),
        ("retry", "one"),
    ]
    assert queue.value("SELECT count(*) FROM livewell.dead_job WHERE id = %s", job) == 1


def test_the_last_twenty_of_a_job_stay_and_those_of_others_are_not_touched(queue: QueueSession) -> None:
    """However often it fails."""
    [often, once] = queue.enqueue(2, max_attempts=100)
    worker = queue.register()
    for number in range(KEPT + 5):
        for claim in queue.claim(worker):
            if claim.id == often:
                queue.settle(claim, "retry", error=f"boom {number}", delay_seconds=0)
            elif number == 0:
                queue.settle(claim, "retry", error="boom", delay_seconds=0)
            else:
                queue.settle(claim, "released", delay_seconds=0)
    assert [one["error"] for one in failures(queue, often)] == [f"boom {n}" for n in reversed(range(5, KEPT + 5))]
    assert [one["error"] for one in failures(queue, once)] == ["boom"]


def test_a_lost_job_is_found_by_the_worker_that_lost_it(queue: QueueSession) -> None:
    """The latest first; what failed for another reason, or with another worker, is not among them."""
    first, second, failed = queue.enqueue(3, max_attempts=9)
    queue.freeze()
    mine, other = queue.register(), queue.register()
    for claim in queue.claim(mine, 3):
        queue.settle(claim, "retry" if claim.id == failed else "lost", error="gone", delay_seconds=0)
        queue.advance(1)
    fail(queue, other, "lost", "gone")
    lost = "SELECT array_agg(l.job_id) FROM livewell.list_lost_jobs(%s, 50) l"
    assert queue.value(lost, mine) == [second, first]
    assert {one["worker"] for one in failures(queue, failed) if one["outcome"] == "retry"} == {mine}


def test_an_error_is_cut(queue: QueueSession) -> None:
    """The job itself keeps more of its last one."""
    [job] = queue.enqueue()
    fail(queue, queue.register(), "retry", "x" * 5000)
    assert [len(one["error"]) for one in failures(queue, job)] == [1000]


def test_they_are_pruned_with_the_dead_letters(queue: QueueSession) -> None:
    """After thirty days at least (Q7)."""
    queue.freeze()
    [job] = queue.enqueue()
    fail(queue, queue.register(), "retry", "boom")
    queue.advance(29 * 86_400)
    assert queue.value("SELECT livewell.prune_queue(1, 1, 100)") == 0
    assert len(failures(queue, job)) == 1
    queue.advance(2 * 86_400)
    assert queue.value("SELECT livewell.prune_queue(1, 1, 100)") == 1
    assert failures(queue, job) == []
