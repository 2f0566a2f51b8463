"""G5, G6: after a restart of the server limited calls wait for the workers' reports.

None is granted before the workers had time to report what upstreams said meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

LEASE = 45
START = ("pg_catalog.pg_postmaster_start_time()", "(SELECT c.frozen_at FROM livewell_test.clock c) + interval '10 s'")


@pytest.fixture
def restarted(queue: QueueSession, queue_dsn: str) -> Iterator[QueueSession]:
    """The server starts ten seconds from now, by the virtual clock."""
    queue.freeze()
    queue.limiter(rate_calls=60, rate_seconds=60, burst=10)
    queue.declare(limiter="api")
    queue.enqueue(5, lane=0)
    with variant(queue_dsn, "server_started", START):
        yield queue


def test_every_worker_renews_before_anything_is_granted(restarted: QueueSession) -> None:
    """The one that asks, and the other; then calls go at once.

    Seen to fail without the wait in limiter_room: the first to ask was given several calls instead
    of one answer "restart".
    """
    one, two = restarted.register(), restarted.register(queues=["wor*"])
    restarted.advance(11)
    [waits] = restarted.ask_limited(one)
    assert (waits.id, waits.reason) == (0, "restart")
    assert waits.wait == pytest.approx(LEASE - 1, abs=0.01)
    restarted.renew(one)
    assert restarted.ask_limited(one)[0].reason == "restart"
    restarted.renew(two)
    assert len(restarted.claim_limited(one)) == 5


def test_a_worker_that_never_comes_back_is_waited_for_one_lease(restarted: QueueSession) -> None:
    """It died with the server; its row cannot tell."""
    alive = restarted.register()
    restarted.register(lease=20)
    restarted.advance(11)
    restarted.renew(alive)
    [waits] = restarted.ask_limited(alive)
    assert waits.wait == pytest.approx(19, abs=0.01)
    restarted.advance(19.1)
    assert len(restarted.claim_limited(alive)) == 5


def test_a_fresh_start_waits_for_nobody(restarted: QueueSession) -> None:
    """Workers that registered since, and workers of other queues, have nothing to say."""
    restarted.register(queues=["mail"])
    restarted.advance(11)
    assert len(restarted.claim_limited(restarted.register())) == 5


def test_a_silence_that_was_reported_stands(restarted: QueueSession) -> None:
    """What was heard is told before the renewal, so nobody calls after it."""
    one, two = restarted.register(), restarted.register()
    restarted.advance(11)
    restarted.value("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 30)")
    restarted.renew(two)
    restarted.renew(one)
    assert restarted.ask_limited(one)[0].reason == "upstream"


def test_more_permits_and_calls_of_people_wait_too(restarted: QueueSession) -> None:
    """A job that was running goes on, but gets no permit; and why says it."""
    one = restarted.register()
    [claim] = restarted.claim_limited(one, 1)
    restarted.advance(11)
    ask = "SELECT answer, reason FROM livewell.take_permits(%s, %s, %s, 1)"
    assert restarted.rows(ask, one, claim.id, claim.fence) == [("wait", "restart")]
    assert restarted.rows("SELECT fence, reason FROM livewell.take_call('api')") == [(None, "restart")]
    restarted.rows("UPDATE livewell.worker SET kinds = '{task}'")
    waiting = restarted.value("SELECT id FROM livewell.job WHERE state = 'ready' LIMIT 1")
    assert restarted.rows("SELECT reason FROM livewell.why_job(%s)", waiting) == [("restart",)]


def test_a_promotion_is_a_restart(queue: QueueSession) -> None:
    """The standby was started long ago; what counts is when numbers were raised."""
    queue.limiter(rate_calls=60, rate_seconds=60, burst=10)
    queue.declare(limiter="api")
    queue.enqueue(1, lane=0)
    one, two = queue.register(), queue.register()
    queue.rows("SELECT setval('livewell.timeline_seq', 4711)")
    try:
        assert queue.ask_limited(one)[0].reason == "restart"
        queue.renew(one)
        queue.renew(two)
        assert len(queue.claim_limited(one)) == 1
    finally:
        queue.rows("SELECT setval('livewell.promoted_seq', 1, false)")


def test_a_bandwidth_wall_opens_the_breaker_before_the_job_ends(queue: QueueSession) -> None:
    """Reported by the queue of the call; said again by the job's end, it moves nothing."""
    queue.limiter(rate_calls=60, rate_seconds=60, breaker_failures=10)
    queue.declare(limiter="api")
    queue.enqueue(5, lane=0)
    worker = queue.register()
    [claim] = queue.claim_limited(worker, 1)
    queue.rows("SELECT livewell.report_wall('work', '', %s)", claim.fence)
    look = "SELECT breaker, opened, open_until FROM livewell.limiter_credential"
    [opened] = queue.rows(look)
    assert opened[:2] == ("open", 1)
    queue.end(claim, "retry", ended="wall")
    assert queue.rows(look) == [opened]
    queue.rows("SELECT livewell.report_wall('nowhere', '', 1)")
