"""§4: a worker buries others only after it has itself renewed without a gap for one lease.

Else an outage robs every living worker.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.queue_sql import QueueSession
from tests.support.variants import Change, variant

LEASE = 45.0
BEAT = 5.0


@pytest.fixture(autouse=True)
def frozen(queue: QueueSession) -> None:
    queue.freeze()


def fleet(queue: QueueSession, n: int) -> list[int]:
    """Workers that hold a job each and have renewed for two leases."""
    workers = [queue.register(lease=LEASE) for _ in range(n)]
    for worker in workers:
        queue.enqueue()
        queue.claim(worker, 1)
    beat(queue, workers, 2 * LEASE)
    return workers


def beat(queue: QueueSession, workers: Sequence[int], seconds: float) -> None:
    """Time passes, these workers renew and one recovers; the rest is silent."""
    for _ in range(int(seconds / BEAT)):
        queue.advance(BEAT)
        for worker in workers:
            queue.renew(worker)
        queue.recover(workers[0])


def living(queue: QueueSession) -> list[int]:
    return queue.column("SELECT id FROM livewell.worker ORDER BY id")


def test_a_dead_worker_is_buried_by_the_others(queue: QueueSession) -> None:
    """One that stays silent for a lease while the others renew."""
    alive, _dead = fleet(queue, 2)
    beat(queue, [alive], LEASE + BEAT)

    assert living(queue) == [alive]
    assert queue.column("SELECT lost FROM livewell.job ORDER BY id") == [0, 1]


@pytest.mark.parametrize("outage", [LEASE + 1, 600, 86400])
def test_after_an_outage_nobody_is_robbed(queue: QueueSession, other: QueueSession, outage: float) -> None:
    """The first to be back renews and recovers at once; the others come a heartbeat later."""
    first, second = fleet(queue, 2)
    queue.advance(outage)
    queue.renew(first)
    assert queue.recover(first) == (0, 0, 0)
    queue.advance(BEAT)

    assert other.renew(second)[0] is True
    assert queue.recover(first) == (0, 0, 0)
    assert living(queue) == [first, second]


def one_that_has_not_noticed_the_gap(queue: QueueSession) -> tuple[int, ...]:
    """An outage of just under a lease: the first to be back recovers before its keeper has renewed.

    The other's lease ended a moment ago.
    """
    _late, first = fleet(queue, 2)
    queue.advance(2)
    queue.renew(first)
    queue.advance(LEASE - 1)  # first has a second left, late is a second over
    return tuple(queue.recover(first))


def test_a_gap_that_is_not_over_yet_counts_too(queue: QueueSession) -> None:
    """Who woke just before its own lease ends has not renewed yet, and buries nobody."""
    assert one_that_has_not_noticed_the_gap(queue) == (0, 0, 0)


def test_after_an_outage_one_needs_a_whole_lease_of_calm(queue: QueueSession) -> None:
    """The truly dead are buried then, not before."""
    first, dead = fleet(queue, 2)
    queue.advance(600)
    queue.renew(first)
    beat(queue, [first], LEASE - BEAT)
    assert living(queue) == [first, dead]

    beat(queue, [first], BEAT)
    assert living(queue) == [first]


def impatient_one(queue: QueueSession) -> list[int]:
    """An outage.

    Then one with a short lease is steady again long before one with a long lease has renewed.
    """
    quick, slow = queue.register(lease=2), queue.register(lease=LEASE)
    queue.advance(600)
    for _ in range(6):
        queue.renew(quick)
        queue.advance(0.5)
    queue.renew(quick)
    queue.recover(quick)
    return [quick, slow]


def test_a_worker_with_a_short_lease_waits_for_the_longer_lease_of_the_other(queue: QueueSession) -> None:
    """Calm for the lease of whom it would bury, not only for its own."""
    assert impatient_one(queue) == living(queue)


def test_a_worker_that_has_just_registered_buries_nobody(queue: QueueSession) -> None:
    """It does not know whether there was an outage before it came."""
    old = queue.register(lease=LEASE)
    queue.advance(600)
    new = queue.register(lease=LEASE)

    assert queue.recover(new) == (0, 0, 0)
    assert living(queue) == [old, new]


STEADY: Change = (" AND v_now - w.steady_since >= w.lease", "")
GAP_NOW: Change = ("v_now - w.renewed_at <= w.lease / 3", "w.expires_at > v_now")


def test_without_the_calm_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """The first one back after an outage robs all the others."""
    with variant(queue_dsn, "recover_jobs", STEADY, (" AND d.lease <= v_steady", "")):
        first, _ = fleet(queue, 2)
        queue.advance(600)
        queue.renew(first)

        assert queue.recover(first)[0] == 1


def test_without_noticing_the_gap_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """A renewal that does not see its own lateness counts as calm through the outage."""
    with variant(queue_dsn, "renew_worker", ("> w.lease / 3 THEN v_now", "> w.lease / 3 AND false THEN v_now")):
        first, _ = fleet(queue, 2)
        queue.advance(600)
        queue.renew(first)

        assert queue.recover(first)[0] == 1


def test_without_looking_at_the_gap_up_to_now_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """A lease that still holds is not calm: the late one is robbed."""
    with variant(queue_dsn, "recover_jobs", GAP_NOW):
        assert one_that_has_not_noticed_the_gap(queue)[0] == 1


def test_without_the_others_lease_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Two seconds of calm do not show that one with a lease of 45 is dead."""
    with variant(queue_dsn, "recover_jobs", (" AND d.lease <= v_steady", "")):
        assert impatient_one(queue) != living(queue)
