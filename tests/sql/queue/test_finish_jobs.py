"""finish_jobs and exchange_jobs.

Many ends in one call, and the typed answer for what is no longer ours.
"""

from __future__ import annotations

import json

from tests.support.queue_sql import Claim, QueueSession


def test_a_finished_job_moves_to_history(queue: QueueSession) -> None:
    """With its fence, its worker and its times."""
    queue.freeze()
    job = queue.enqueue(kind="mail")[0]
    created = queue.now()
    queue.advance(3)
    claim = queue.claim(queue.register())[0]
    started = queue.now()
    queue.advance(2)

    assert queue.finish(claim) == []
    columns = "id, fence, worker, created_at, started_at, finished_at, attempt, outcome::text, queue, kind"
    assert queue.rows(f"SELECT {columns} FROM livewell.job_history") == [
        (job, claim.fence, claim.worker, created, started, queue.now(), 1, "succeeded", "work", "mail")
    ]
    assert queue.column("SELECT id FROM livewell.job") == []


def test_one_call_ends_many_in_different_ways_and_names_the_fenced(queue: QueueSession) -> None:
    """Q5: succeeded, retried, refused, cancelled, released, and two that are not ours."""
    ids = queue.enqueue(5)
    worker = queue.register()
    done, retry, refused, cancelled, released = queue.claim(worker)
    outcomes = {retry: "retry", refused: "refused", cancelled: "cancelled", released: "released"}
    others = [{"id": claim.id, "fence": claim.fence, "outcome": outcome} for claim, outcome in outcomes.items()]
    others.append({"id": 1, "fence": 2, "outcome": "retry"})

    fenced = queue.rows(
        "SELECT * FROM livewell.finish_jobs(%s, %s, %s, %s::jsonb)",
        worker,
        [done.id, 7],
        [done.fence, 8],
        json.dumps(others),
    )

    assert sorted(fenced) == [(1, 2), (7, 8)]
    assert queue.states(ids) == ["succeeded", "delayed", "failed", "cancelled", "ready"]


def test_a_finish_sent_twice_is_fenced_the_second_time(queue: QueueSession) -> None:
    """An answer that was lost makes no second end."""
    queue.enqueue()
    claim = queue.claim(queue.register())[0]
    queue.finish(claim)

    assert queue.finish(claim) == [(claim.id, claim.fence)]
    assert queue.value("SELECT count(*) FROM livewell.job_history") == 1


def test_only_the_holder_of_id_fence_and_incarnation_may_finish(queue: QueueSession) -> None:
    """One of the three wrong is enough."""
    job = queue.enqueue()[0]
    worker, stranger = queue.register(), queue.register()
    claim = queue.claim(worker)[0]

    assert queue.finish(Claim(job, claim.fence, 1, 0, stranger)) != []
    assert queue.finish(Claim(job, claim.fence - 1, 1, 0, worker)) != []
    assert queue.finish(Claim(job + 1, claim.fence, 1, 0, worker)) != []
    assert queue.settle(Claim(job, claim.fence, 1, 0, stranger), "retry") != []
    assert queue.settle(Claim(job, claim.fence - 1, 1, 0, worker), "refused") != []
    assert queue.state(job) == "running"
    assert queue.finish(claim) == []


def test_nothing_to_finish_is_answered_with_nothing(queue: QueueSession) -> None:
    """Empty arrays, no others, empty others."""
    assert queue.finish() == []
    assert queue.rows("SELECT * FROM livewell.finish_jobs(1, '{}', '{}', '[]')") == []


def test_a_finish_commits_with_the_transaction_around_it(queue: QueueSession, other: QueueSession) -> None:
    """The effect and the end, or neither."""
    job = queue.enqueue()[0]
    claim = queue.claim(queue.register())[0]
    with queue.connection.transaction(force_rollback=True):
        assert queue.finish(claim) == []

    assert other.state(job) == "running"
    assert queue.finish(claim) == []


def test_success_wins_over_a_cancellation_that_came_too_late(queue: QueueSession) -> None:
    """What is done is done."""
    job = queue.enqueue()[0]
    claim = queue.claim(queue.register())[0]
    assert queue.cancel(job) == "requested"

    assert queue.finish(claim) == []
    assert queue.state(job) == "succeeded"


def test_an_exchange_finishes_and_claims_in_one_call(queue: QueueSession) -> None:
    """The fenced first, then the new jobs."""
    first, second = queue.enqueue(2)
    worker = queue.register()
    claim = queue.claim(worker, 1)[0]
    rows = queue.rows(
        "SELECT answer, id FROM livewell.exchange_jobs(%s, %s, %s, NULL, '{work}', 5, false)",
        worker,
        [first, 7],
        [claim.fence, 8],
    )

    assert rows == [("fenced", 7), ("claimed", second)]
    assert queue.states([first, second]) == ["succeeded", "running"]


def test_an_exchange_claims_what_its_own_finish_has_released(queue: QueueSession) -> None:
    """Two statements: in one, the freed row would be invisible."""
    job = queue.enqueue()[0]
    worker = queue.register()
    claim = queue.claim(worker)[0]
    others = json.dumps([{"id": job, "fence": claim.fence, "outcome": "released"}])
    rows = queue.rows(
        "SELECT answer, id, attempt FROM livewell.exchange_jobs(%s, '{}', '{}', %s, '{work}', 5, false)", worker, others
    )

    assert rows == [("claimed", job, 1)]


def test_an_exchange_without_a_limit_only_finishes(queue: QueueSession) -> None:
    """As in a graceful stop."""
    first, second = queue.enqueue(2)
    worker = queue.register()
    claim = queue.claim(worker, 1)[0]
    rows = queue.rows(
        "SELECT * FROM livewell.exchange_jobs(%s, %s, %s, NULL, '{work}', 0, false)", worker, [first], [claim.fence]
    )

    assert rows == []
    assert queue.states([first, second]) == ["succeeded", "ready"]


def test_an_exchange_of_a_buried_worker_says_so_after_the_fenced(queue: QueueSession) -> None:
    """It learns both at once."""
    queue.enqueue()
    rows = queue.rows("SELECT answer FROM livewell.exchange_jobs(999999999, '{7}', '{8}', NULL, '{work}', 5, false)")

    assert rows == [("fenced",), ("buried",)]
