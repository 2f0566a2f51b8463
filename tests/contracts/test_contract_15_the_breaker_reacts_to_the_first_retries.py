"""Contract 15: the breaker reacts to the first retries, not only to dead letters.

Broken once, and kept broken below: counted only when a job has no attempts left, a dead upstream is
called attempts × jobs times before anybody notices.
"""

from __future__ import annotations

from tests.support.queue_sql import QueueSession
from tests.support.variants import variant


def calls_until_open(queue: QueueSession) -> int:
    """An upstream that always fails, jobs with ten attempts.

    How often it is called before the breaker opens.
    """
    queue.reset()
    queue.limiter(breaker_failures=10, breaker_in_row=5)
    queue.declare(limiter="api", attempts=10)
    queue.enqueue(20, lane=0)
    worker = queue.register()
    for n in range(1, 100):
        [claim] = queue.claim_limited(worker, 1)
        queue.end(claim, "retry", ended="upstream", delay_seconds=0)
        if queue.value("SELECT breaker FROM livewell.limiter_credential") == "open":
            return n
    return 100


def test_five_failures_in_a_row_open_it_although_nothing_is_a_dead_letter(queue: QueueSession) -> None:
    """From the first attempt on."""
    assert calls_until_open(queue) == 5
    assert queue.value("SELECT count(*) FROM livewell.dead_job") == 0


def test_counted_at_the_last_attempt_only_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(
        queue_dsn,
        "settle_jobs",
        (
            "array_agg(g.ended ORDER BY j.id)",
            "array_agg(CASE WHEN j.attempt >= j.max_attempts THEN g.ended END ORDER BY j.id)",
        ),
    ):
        assert calls_until_open(queue) > 50
