"""claim_limited: queue and group limits, concurrency of a limiter, credentials, shared calls (Q10, G4)."""

from __future__ import annotations

import pytest

from tests.support.queue_sql import QueueSession


def test_a_limited_queue_is_passed_over_by_the_ordinary_claim(queue: QueueSession) -> None:
    """Whoever asks: its jobs are only to be had within its limits."""
    queue.declare(concurrency=2)
    queue.enqueue(3)
    assert queue.claim(queue.register()) == []


def test_no_more_run_than_the_queue_allows(queue: QueueSession) -> None:
    """In the whole fleet; a finish makes room."""
    queue.declare(concurrency=2)
    queue.enqueue(3)
    one, two = queue.register(), queue.register()
    first, _ = queue.claim_limited(one)
    [waits] = queue.ask_limited(two)
    assert (waits.id, waits.reason) == (0, "queue")
    queue.end(first)
    assert len(queue.claim_limited(two)) == 1


def test_no_more_run_than_the_group_allows_and_the_rest_is_held(queue: QueueSession) -> None:
    """Held, not ready: they are in nobody's way.

    The next is let go when one ends, in the order in which they came.
    """
    queue.declare(group_limit=2)
    jobs = queue.enqueue(5, group_key="a")
    other = queue.enqueue(1, group_key="b")[0]
    worker = queue.register()
    assert queue.states(jobs) == ["ready", "ready", "held", "held", "held"]

    claims = queue.claim_limited(worker)
    assert [claim.id for claim in claims] == [*jobs[:2], other]
    assert queue.ask_limited(worker)[0].reason == "nothing"
    queue.end(claims[0])
    assert [claim.id for claim in queue.claim_limited(worker)] == [jobs[2]]


@pytest.mark.parametrize("outcome", ["refused", "cancelled", "retry"])
def test_a_place_in_a_group_is_freed_whatever_way_a_job_ends(queue: QueueSession, outcome: str) -> None:
    """Dead letter, cancelled, or waiting for its next attempt."""
    queue.declare(group_limit=1)
    jobs = queue.enqueue(2, group_key="a")
    [claim] = queue.claim_limited(queue.register())
    queue.end(claim, outcome)
    assert queue.state(jobs[1]) == "ready"


def test_ready_jobs_beyond_the_limit_become_held_at_the_claim(queue: QueueSession, other: QueueSession) -> None:
    """Two transactions enqueued at once, and each saw a free group: the claim counts."""
    queue.declare(group_limit=1)
    with queue.connection.transaction():
        first = queue.enqueue(1, group_key="a")[0]
        second = other.enqueue(1, group_key="a")[0]
    assert queue.states([first, second]) == ["ready", "ready"]
    assert len(queue.claim_limited(queue.register())) == 1
    assert sorted(queue.states([first, second])) == ["held", "running"]


def test_two_hundred_of_a_full_group_do_not_keep_others_waiting(queue: QueueSession) -> None:
    """One claim finds what is behind them."""
    queue.declare(group_limit=1)
    queue.enqueue(200, group_key="full")
    queue.rows("UPDATE livewell.job SET state = 'ready', held_by = NULL")  # as if a limit had been lowered
    free = queue.enqueue(1, group_key="free")[0]
    claimed = {claim.id for claim in queue.claim_limited(queue.register())}
    assert len(claimed) == 2
    assert free in claimed


def test_a_raised_limit_lets_held_jobs_go(queue: QueueSession) -> None:
    """Within the second, by maintain."""
    queue.declare(group_limit=1)
    jobs = queue.enqueue(4, group_key="a")
    queue.declare(group_limit=3)
    queue.rows("SELECT livewell.maintain(0, 0, 1)")
    queue.rows("SELECT livewell.maintain(0, 0, 1)")
    assert queue.states(jobs) == ["ready", "ready", "ready", "held"]


def test_a_limit_that_is_gone_lets_all_go(queue: QueueSession) -> None:
    """The queue is an ordinary one again."""
    queue.declare(group_limit=1)
    jobs = queue.enqueue(3, group_key="a")
    queue.declare()
    queue.rows("SELECT livewell.maintain(0, 0, 1)")
    queue.rows("SELECT livewell.maintain(0, 0, 1)")
    assert queue.states(jobs) == ["ready", "ready", "ready"]
    assert len(queue.claim(queue.register())) == 3


def test_concurrency_of_a_limiter_holds_over_its_queues(queue: QueueSession) -> None:
    """Two queues, three calls at once."""
    queue.limiter(concurrency=3)
    for name in ("a", "b"):
        queue.declare(name, limiter="api")
        queue.enqueue(3, queue=name)
    worker = queue.register(queues=("a", "b"))
    assert len(queue.claim_limited(worker, queue="a", calls=2)) == 2
    assert len(queue.claim_limited(worker, queue="b")) == 1
    assert queue.ask_limited(worker, queue="b")[0].reason == "concurrency"


def test_a_key_of_a_limiter_is_one_over_its_queues(queue: QueueSession) -> None:
    """Never two calls at once for the same key, whatever the queue (R12)."""
    queue.limiter(per_key=1)
    for name in ("a", "b"):
        queue.declare(name, limiter="api")
    worker = queue.register(queues=("a", "b"))
    [first] = queue.enqueue(1, queue="a", group_key="AAPL")
    [second] = queue.enqueue(1, queue="b", group_key="AAPL")
    [claim] = queue.claim_limited(worker, queue="a")
    assert queue.ask_limited(worker, queue="b")[0].reason == "group"
    assert queue.states([first, second]) == ["running", "held"]
    queue.end(claim)
    assert [claim.id for claim in queue.claim_limited(worker, queue="b")] == [second]


def test_jobs_with_one_call_key_are_one_call_and_one_permit(queue: QueueSession) -> None:
    """As many as one call may carry; the rest is another call."""
    queue.limiter(rate_calls=2, rate_seconds=60, burst=2, reserve=0)
    queue.declare(limiter="api")
    queue.enqueue(5, kind="quote", call_key="us")
    queue.enqueue(2, kind="quote", call_key="eu")
    claims = queue.claim_limited(queue.register(), batches={"quote": 10})
    assert [
        [c.fence - claims[0].fence for c in claims if c.call == call] for call in dict.fromkeys(c.call for c in claims)
    ] == [
        [0, 1, 2, 3, 4],
        [5, 6],
    ]
    assert queue.value("SELECT sum(calls) FROM livewell.limiter_flight") == 2


def test_a_call_carries_no_more_than_its_kind_allows(queue: QueueSession) -> None:
    """Five jobs, two to a call: three calls."""
    queue.declare(concurrency=100)
    queue.enqueue(5, kind="quote")
    claims = queue.claim_limited(queue.register(), batches={"quote": 2})
    assert len(claims) == 5
    assert len({claim.call for claim in claims}) == 3


def test_the_credential_with_the_most_room_is_taken(queue: QueueSession) -> None:
    """Two keys carry twice as much, and each its own part."""
    queue.limiter(rate_calls=3, rate_seconds=60, burst=3, reserve=0, credentials=["one", "two"])
    queue.declare(limiter="api")
    queue.enqueue(10)
    worker = queue.register()
    used = [str(claim.credential) for _ in range(3) for claim in queue.claim_limited(worker)]
    assert sorted(used) == ["one"] * 3 + ["two"] * 3


def test_a_job_that_was_lost_runs_alone_on_an_empty_worker(queue: QueueSession) -> None:
    """As in any queue (Q17)."""
    queue.declare(concurrency=10)
    queue.enqueue(3)
    queue.rows("UPDATE livewell.job SET lost = 1 WHERE id = (SELECT min(id) FROM livewell.job)")
    worker = queue.register()
    assert len(queue.claim_limited(worker)) == 2
    assert [claim.lost for claim in queue.claim_limited(worker, empty=True)] == [1]


def test_a_buried_worker_and_a_paused_queue_get_nothing(queue: QueueSession) -> None:
    """The one has no lease, the other says so."""
    queue.declare(concurrency=1)
    queue.enqueue()
    assert queue.claim_limited(12345) == []
    queue.pause()
    assert queue.ask_limited(queue.register())[0].reason == "paused"


def test_lane_0_goes_first(queue: QueueSession) -> None:
    """Then rank, then id (Q3)."""
    queue.declare(concurrency=1)
    queue.enqueue(1, lane=1, priority=100)
    urgent = queue.enqueue(1, lane=0)[0]
    assert [claim.id for claim in queue.claim_limited(queue.register())] == [urgent]


def test_a_lost_job_that_may_not_run_now_keeps_nobody_waiting(queue: QueueSession) -> None:
    """The background is at its stop.

    An empty worker passes over its lost job and takes what people wait for.
    """
    queue.limiter(budget_units=10, budget_unit="calls", budget_seconds=86400, budget_stop=1, budget_background_stop=0.1)
    queue.declare(limiter="api")
    queue.enqueue(2, lane=1)
    [first] = queue.claim_limited(queue.register())
    queue.end(first)
    queue.rows("UPDATE livewell.job SET lost = 1")
    urgent = queue.enqueue(1, lane=0)
    assert [claim.id for claim in queue.claim_limited(queue.register(), empty=True)] == urgent
