"""Q11: batches are open until sealed, counted as their jobs end, and followed by one job."""

from __future__ import annotations

import json

import psycopg
import pytest

from tests.support.queue_sql import QueueSession


def batch(queue: QueueSession, when: str | None = "done") -> tuple[int, int]:
    """Open one with a follow-up; its id and the follow-up's."""
    batch_id, follow_id = queue.ids(2)
    follow = json.dumps({"queue": "work", "kind": "report", "payload": {"day": 1}}) if when else None
    queue.rows(
        "SELECT livewell.create_batch(%s, %s, %s, %s::jsonb)", batch_id, follow_id if when else None, when, follow
    )
    return batch_id, follow_id


def seal(queue: QueueSession, batch_id: int) -> None:
    assert queue.value("SELECT livewell.seal_batch(%s)", batch_id)


def counts(queue: QueueSession, batch_id: int) -> tuple[object, ...]:
    """(state, total, remaining, succeeded, failed, cancelled)."""
    return queue.rows(
        "SELECT state, total, remaining, succeeded, failed, cancelled FROM livewell.show_batch(%s)", batch_id
    )[0]


def test_the_follow_up_comes_when_the_last_job_has_ended(queue: QueueSession) -> None:
    """Not before it is sealed, not before all are done, and once."""
    batch_id, follow_id = batch(queue)
    queue.enqueue(3, batch_id=batch_id)
    worker = queue.register()
    first, second, third = queue.claim(worker)
    queue.finish(first)
    assert counts(queue, batch_id) == ("open", 3, 2, 1, 0, 0)
    seal(queue, batch_id)
    queue.finish(second)
    assert queue.state(follow_id) == "nowhere"
    queue.finish(third)
    assert counts(queue, batch_id) == ("ended", 3, 0, 3, 0, 0)
    assert queue.state(follow_id) == "ready"
    assert queue.job(follow_id, "kind", "payload") == ("report", {"day": 1})
    seal(queue, batch_id)  # a repeated call changes nothing
    assert queue.value("SELECT count(*) FROM livewell.job WHERE kind = 'report'") == 1


def test_an_empty_batch_is_followed_as_soon_as_it_is_sealed(queue: QueueSession) -> None:
    """Zero of zero are done."""
    batch_id, follow_id = batch(queue)
    seal(queue, batch_id)
    assert queue.state(follow_id) == "ready"


def test_all_ways_to_end_are_counted(queue: QueueSession) -> None:
    """Success, dead letter, cancelled while waiting, cancelled while running.

    A retry is not an end.
    """
    batch_id, follow_id = batch(queue)
    jobs = queue.enqueue(5, batch_id=batch_id)
    seal(queue, batch_id)
    queue.cancel(jobs[4])
    done, dead, stopped, retried = queue.claim(queue.register())
    queue.finish(done)
    queue.settle(dead, "refused")
    queue.settle(stopped, "cancelled")
    queue.settle(retried, "retry")
    assert counts(queue, batch_id) == ("running", 5, 1, 1, 1, 2)
    queue.cancel(retried.id)
    assert counts(queue, batch_id) == ("ended", 5, 0, 1, 1, 3)
    assert queue.state(follow_id) == "ready"


def test_a_follow_up_that_wants_success_waits_for_a_redrive(queue: QueueSession) -> None:
    """A dead letter stops it; redriven and done, it counts."""
    batch_id, follow_id = batch(queue, "succeeded")
    queue.enqueue(2, batch_id=batch_id)
    seal(queue, batch_id)
    worker = queue.register()
    good, bad = queue.claim(worker)
    queue.finish(good)
    queue.settle(bad, "refused")
    assert counts(queue, batch_id) == ("failed", 2, 0, 1, 1, 0)
    assert queue.state(follow_id) == "nowhere"

    assert queue.redrive([bad.id]) == (1, 0)
    assert counts(queue, batch_id) == ("running", 2, 1, 1, 0, 0)
    queue.finish(*queue.claim(worker))
    assert counts(queue, batch_id) == ("ended", 2, 0, 2, 0, 0)
    assert queue.state(follow_id) == "ready"


def test_a_letter_redriven_after_the_end_no_longer_counts(queue: QueueSession) -> None:
    """The follow-up has run; nothing is counted twice."""
    batch_id, follow_id = batch(queue)
    queue.enqueue(1, batch_id=batch_id)
    seal(queue, batch_id)
    worker = queue.register()
    [bad] = queue.claim(worker)
    queue.settle(bad, "refused")
    queue.finish(*queue.claim(worker))  # the follow-up
    queue.redrive([bad.id])
    queue.finish(*queue.claim(worker))
    assert counts(queue, batch_id) == ("ended", 1, 0, 0, 1, 0)
    assert queue.state(follow_id) == "succeeded"


def test_only_inserted_jobs_count(queue: QueueSession) -> None:
    """One that was merged into another job belongs to that one."""
    queue.enqueue(1, unique_key="k")
    batch_id, _ = batch(queue)
    jobs = queue.ids(2)
    queue.enqueue_given(
        [{"id": jobs[0], "unique_key": "k", "batch_id": batch_id}, {"id": jobs[1], "batch_id": batch_id}]
    )
    seal(queue, batch_id)
    assert counts(queue, batch_id)[1:3] == (1, 1)


@pytest.mark.parametrize("exists", [True, False])
def test_nothing_is_added_to_a_sealed_or_unknown_batch(queue: QueueSession, exists: bool) -> None:
    """It says so; a job that nobody counts would be worse."""
    batch_id = 7
    if exists:
        batch_id, _ = batch(queue)
        seal(queue, batch_id)
    with pytest.raises(psycopg.Error, match="sealed or does not exist"):
        queue.enqueue(1, batch_id=batch_id)


def test_without_a_follow_up_it_simply_ends(queue: QueueSession) -> None:
    """For those who only count."""
    batch_id, _ = batch(queue, None)
    queue.enqueue(1, batch_id=batch_id)
    seal(queue, batch_id)
    queue.finish(*queue.claim(queue.register()))
    assert counts(queue, batch_id)[0] == "ended"


def test_no_batch_may_be_said_as_null(queue: QueueSession) -> None:
    """As jsonb_build_object says it."""
    assert queue.state(queue.enqueue(1, batch_id=None)[0]) == "ready"


def test_batches_are_listed_the_newest_first(queue: QueueSession) -> None:
    """By pages; each says what show_batch says of it, and an open one counts a bounded number of jobs."""
    ids = []
    for state in ("open", "running", "failed", "ended"):
        batch_id, _ = batch(queue, "succeeded" if state == "failed" else None)
        ids.append(batch_id)
        if state != "ended":
            queue.enqueue(2, batch_id=batch_id)
        if state == "failed":
            worker = queue.register()
            for claim in queue.claim(worker, 10):
                queue.settle(claim, "refused", error="no")
        if state != "open":
            seal(queue, batch_id)
    found = queue.rows("SELECT id, state, remaining, succeeded, failed, cancelled FROM livewell.list_batches(NULL, 10)")
    assert [row[0] for row in found] == sorted(ids, reverse=True)
    assert [row[1:] for row in found] == [
        (state, remaining, *rest) for state, _, remaining, *rest in (counts(queue, row[0]) for row in found)
    ]
    assert {row[1] for row in found} >= {"failed", "ended"}
    first = queue.column("SELECT id FROM livewell.list_batches(NULL, 2)")
    assert first + queue.column("SELECT id FROM livewell.list_batches(%s, 10)", first[-1]) == [row[0] for row in found]


def test_the_list_counts_a_thousand_jobs_of_an_open_batch(queue: QueueSession) -> None:
    """And says that there are more."""
    batch_id, _ = batch(queue, None)
    listed = "SELECT remaining, remaining_is_more FROM livewell.list_batches(NULL, 10)"
    queue.enqueue(1000, batch_id=batch_id)
    assert queue.rows(listed) == [(1000, False)]
    queue.enqueue(1, batch_id=batch_id)
    assert queue.rows(listed) == [(1000, True)]
