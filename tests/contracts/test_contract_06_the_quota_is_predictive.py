"""Contract 6: the quota is predictive, buffered and producer-aware.

What was used is measured and booked once.

Broken once, and kept broken below: without the reservations of what runs, twenty calls are under
way before the first is booked; without the buffer the last of them end above it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import pytest

from tests.support.queue_sql import QueueSession
from tests.support.variants import Change, variant

BUDGET, STOP, CALL = 10_000, 0.95, 600


def most_taken(queue: QueueSession) -> int:
    """Claim until nothing more is given, before anything has ended.

    What would be used if all of it were.
    """
    queue.reset()
    queue.limiter(budget_units=BUDGET, budget_unit="bytes", budget_seconds=86400, estimate_units=CALL)
    queue.declare(limiter="api")
    queue.enqueue(100, lane=0)
    worker = queue.register()
    taken = 0
    while claims := queue.claim_limited(worker, 3):
        taken += len(claims)
    return taken * CALL


def test_what_runs_and_what_is_about_to_run_stays_below_the_buffer(queue: QueueSession) -> None:
    """Nothing has been booked yet, and still nothing is given that would not fit."""
    assert BUDGET * STOP - CALL < most_taken(queue) <= BUDGET * STOP


RESERVED = ("sum(j.reserved_units) AS units", "0 AS units")
BUFFERED = (
    "v_room.units := v_c.units; v_room.background_units := v_c.background_units;",
    "v_room.units := 1000000; v_room.background_units := 1000000; v_most := 100;",
)


@pytest.mark.parametrize("broken", [RESERVED, BUFFERED], ids=["reservations", "buffer"])
def test_without_either_it_overshoots(queue: QueueSession, queue_dsn: str, broken: Change) -> None:
    """Broken on purpose."""
    changes = [broken]
    if broken is BUFFERED:
        changes.append(RESERVED)
    with variant(queue_dsn, "measure_room", *changes):
        assert most_taken(queue) > BUDGET * STOP


def booked_after_a_zombie(queue: QueueSession, broken: AbstractContextManager[None]) -> int:
    """A worker dies after its call of 700 bytes and reports it late; the second run uses 100."""
    queue.reset()
    queue.limiter(budget_units=BUDGET, budget_unit="bytes", budget_seconds=86400, estimate_units=CALL)
    queue.declare(limiter="api")
    queue.enqueue(1, lane=0)
    dying = queue.register()
    [zombie] = queue.claim_limited(dying)
    queue.expire(dying)
    with broken:
        queue.recover(queue.steady())
        queue.end(zombie, used=700)
        [owner] = queue.claim_limited(queue.register(), empty=True)
        queue.end(owner, used=100)
    return int(queue.value("SELECT sum(units) FROM livewell.limiter_usage"))


def test_every_call_is_booked_once_at_what_it_used(queue: QueueSession) -> None:
    """700 and 100, although one was charged by estimate first."""
    assert booked_after_a_zombie(queue, nullcontext()) == 800


def test_if_late_reports_were_ignored_the_books_would_be_wrong(queue: QueueSession, queue_dsn: str) -> None:
    """Broken on purpose: the estimate of 600 stands."""
    broken = variant(queue_dsn, "finish_jobs", ("WHERE o.used IS NOT NULL AND", "WHERE false AND"))
    assert booked_after_a_zombie(queue, broken) == 700
