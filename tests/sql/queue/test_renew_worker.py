"""renew_worker, register_worker, release_worker, report_progress and list_workers.

The life of a lease.
"""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.support.queue_sql import QueueSession


@pytest.fixture(autouse=True)
def frozen(queue: QueueSession) -> None:
    queue.freeze()


def lease(queue: QueueSession, worker: int) -> tuple[object, ...]:
    return queue.rows("SELECT renewed_at, expires_at, steady_since FROM livewell.worker WHERE id = %s", worker)[0]


def test_a_new_worker_has_a_lease_from_now(queue: QueueSession) -> None:
    """And is steady since now."""
    now = queue.now()
    worker = queue.register(lease=45)

    assert lease(queue, worker) == (now, now + timedelta(seconds=45), now)


def test_incarnations_are_never_reused(queue: QueueSession) -> None:
    """A worker that rises again is another."""
    first = queue.register()
    queue.release(first)

    assert queue.register() > first


@pytest.mark.parametrize("seconds", [0, 0.05, 3601, -1])
def test_a_lease_out_of_bounds_is_refused(queue: QueueSession, seconds: float) -> None:
    """A tenth of a second to an hour."""
    with pytest.raises(psycopg.errors.CheckViolation):
        queue.register(lease=seconds)


def test_a_heartbeat_in_time_keeps_the_worker_steady(queue: QueueSession) -> None:
    """Up to a third of the lease apart."""
    start = queue.now()
    worker = queue.register(lease=45)
    queue.advance(15)

    assert queue.renew(worker)[0] is True
    assert lease(queue, worker) == (queue.now(), queue.now() + timedelta(seconds=45), start)


def test_a_gap_makes_it_unsteady(queue: QueueSession) -> None:
    """Everybody may have had the same gap."""
    worker = queue.register(lease=45)
    queue.advance(16)
    queue.renew(worker)

    assert lease(queue, worker)[2] == queue.now()


def test_a_late_heartbeat_is_valid(queue: QueueSession) -> None:
    """An hour late, but nobody buried it."""
    worker = queue.register(lease=45)
    queue.advance(3600)

    assert queue.renew(worker)[0] is True
    assert lease(queue, worker)[1] == queue.now() + timedelta(seconds=45)


def test_a_worker_without_a_row_is_told_so_and_writes_nothing(queue: QueueSession) -> None:
    """Also not the deadlines it brought."""
    queue.enqueue()
    worker = queue.register()
    claim = queue.claim(worker)[0]
    queue.rows("DELETE FROM livewell.worker")

    assert queue.renew(worker, claim) == (False, 0, [], False)
    assert queue.job(claim.id, "deadline_at") == (None,)


def test_the_heartbeat_sets_the_deadlines_of_started_handlers(queue: QueueSession) -> None:
    """Its own, under the right fence; no others."""
    queue.enqueue(3)
    worker, stranger = queue.register(), queue.register()
    mine, idle = queue.claim(worker, 2)
    theirs = queue.claim(stranger, 1)[0]
    queue.renew(worker, mine, theirs, timeout=30)

    deadlines = [queue.job(claim.id, "deadline_at")[0] for claim in (mine, idle, theirs)]
    assert deadlines == [queue.now() + timedelta(seconds=30), None, None]


def test_the_answer_names_the_fences_to_cancel(queue: QueueSession) -> None:
    """Of this worker only."""
    queue.enqueue(3)
    worker, stranger = queue.register(), queue.register()
    first, _ = queue.claim(worker, 2)
    theirs = queue.claim(stranger, 1)[0]
    queue.cancel(first.id)
    queue.cancel(theirs.id)

    assert queue.renew(worker)[2] == [first.fence]


def test_the_mark_is_the_end_of_the_newest_block_of_fences(queue: QueueSession) -> None:
    """Whoever it was handed to: every fence so far is at or below it, every later one is above."""
    queue.enqueue(3)
    worker, stranger = queue.register(), queue.register()
    earlier = queue.claim(stranger, 2)
    mark = queue.renew(worker)[1]
    later = queue.claim(worker)

    assert max(claim.fence for claim in earlier) <= mark < min(claim.fence for claim in later)


def suspects(queue: QueueSession, n: int) -> None:
    queue.enqueue(n)
    queue.rows("UPDATE livewell.job SET lost = 1 WHERE state = 'ready'")


def test_as_many_drain_as_there_are_suspects_but_at_most_half(queue: QueueSession) -> None:
    """Somebody must be empty for them, and the others work on."""
    workers = [queue.register() for _ in range(6)]
    assert [queue.renew(worker)[3] for worker in workers].count(True) == 0
    suspects(queue, 2)
    assert [queue.renew(worker)[3] for worker in workers].count(True) == 2
    suspects(queue, 20)
    assert [queue.renew(worker)[3] for worker in workers].count(True) == 3


def test_a_worker_alone_drains(queue: QueueSession) -> None:
    """Half of one is one."""
    worker = queue.register()
    suspects(queue, 1)

    assert queue.renew(worker)[3] is True


def test_everybody_has_a_turn_at_draining(queue: QueueSession) -> None:
    """It moves on with time, so one busy worker cannot hold the suspects up."""
    workers = [queue.register(lease=45) for _ in range(3)]
    suspects(queue, 1)
    drained: set[int] = set()
    for _ in range(6):
        drained |= {worker for worker in workers if queue.renew(worker)[3]}
        queue.advance(45)

    assert drained == set(workers)


def test_nobody_drains_for_a_paused_queue_or_one_it_does_not_serve(queue: QueueSession) -> None:
    """It could not run them."""
    queue.declare("other")
    suspects(queue, 1)
    elsewhere, here = queue.register(queues=["other"]), queue.register()
    assert [queue.renew(elsewhere)[3], queue.renew(here)[3]] == [False, True]

    queue.pause()
    assert queue.renew(here)[3] is False


def test_a_release_hands_everything_back_at_once(queue: QueueSession) -> None:
    """No attempt, no loss, no lease; what others hold stays."""
    jobs = queue.enqueue(3)
    worker, other_worker = queue.register(), queue.register()
    queue.claim(worker, 2)
    queue.claim(other_worker, 1)

    assert queue.release(worker) == 2
    assert queue.states(jobs) == ["ready", "ready", "running"]
    assert queue.rows("SELECT attempt, lost FROM livewell.job WHERE state = 'ready'") == [(0, 0)] * 2
    assert queue.column("SELECT id FROM livewell.worker") == [other_worker]


def test_a_release_of_nobody_is_nothing(queue: QueueSession) -> None:
    """Twice, or never registered."""
    worker = queue.register()

    assert [queue.release(worker), queue.release(worker), queue.release(0)] == [0, 0, 0]


def test_a_release_honours_a_cancellation(queue: QueueSession) -> None:
    """What somebody wanted to end does not run again."""
    job = queue.enqueue()[0]
    worker = queue.register()
    queue.claim(worker)
    queue.cancel(job)
    queue.release(worker)

    assert queue.state(job) == "cancelled"


def test_progress_is_written_for_what_is_held(queue: QueueSession) -> None:
    """Bounded, with its note, and only under the right fence."""
    queue.enqueue(3)
    worker = queue.register()
    first, second, third = queue.claim(worker)
    written = queue.value(
        "SELECT livewell.report_progress(%s, %s, %s, '{50,120,-5}', %s)",
        worker,
        [first.id, second.id, third.id],
        [first.fence, second.fence, third.fence - 1],
        ["half", "n" * 600, "never"],
    )

    assert written == 2
    assert queue.job(first.id, "progress", "progress_note") == (50, "half")
    assert queue.job(second.id, "progress", "length(progress_note)") == (100, 500)
    assert queue.job(third.id, "progress", "progress_note") == (0, None)


def test_the_list_of_workers_shows_leases_and_holdings(queue: QueueSession) -> None:
    """What the command line prints."""
    worker = queue.register(lease=45, name="a")
    queue.enqueue(2)
    queue.claim(worker)
    queue.advance(10)

    columns = "id, name, version, queues, slots, holds, renewed_seconds_ago, lease_left_seconds"
    assert queue.rows(f"SELECT {columns} FROM livewell.list_workers()") == [
        (worker, "a", "test", ["work"], 1, 2, 10, 35)
    ]
