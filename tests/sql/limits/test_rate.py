"""G1: the rate, as claims feel it. Time travels: the database's clock is the only one."""

from __future__ import annotations

import pytest

from tests.support.queue_sql import QueueSession


@pytest.fixture
def api(queue: QueueSession) -> QueueSession:
    """Sixty calls a minute, ten at once, a tenth for people; permits last a second; the clock stands."""
    queue.freeze()
    queue.limiter(rate_calls=60, rate_seconds=60, burst=10, reserve=0.1, permit_seconds=1)
    queue.declare(limiter="api")
    return queue


def drain(api: QueueSession, worker: int) -> int:
    """Claim and end all that may be called now; how many."""
    claims = api.claim_limited(worker)
    for claim in claims:
        api.end(claim)
    return len(claims)


def test_a_burst_goes_at_once_and_then_it_is_paced(api: QueueSession) -> None:
    """Ten, then one a second; and it says when to ask again."""
    api.enqueue(100, lane=0)
    worker = api.register()
    assert drain(api, worker) == 10
    [waits] = api.ask_limited(worker)
    assert (waits.id, waits.reason) == (0, "rate")
    assert waits.wait == pytest.approx(1.0, abs=0.01)
    api.advance(1.001)
    assert drain(api, worker) == 1
    api.advance(5.001)
    assert drain(api, worker) == 5


def test_never_more_than_the_rate_in_a_window_and_two_permits(api: QueueSession) -> None:
    """Sixty in 62 seconds, however the time goes by."""
    api.enqueue(300, lane=0)
    worker = api.register()
    grants: list[tuple[float, int]] = []
    for step in range(400):
        grants += [(step * 0.5, drain(api, worker))]
        api.advance(0.5)
    for at, _ in grants:
        assert sum(n for when, n in grants if at <= when < at + 62) <= 60
    assert sum(n for _, n in grants) >= 0.94 * 60 * 200 / 60


def test_the_background_leaves_the_reserve_alone(api: QueueSession) -> None:
    """54 of 60 for lane 1; people still get theirs."""
    api.enqueue(100, lane=1)
    worker = api.register()
    background = 0
    for _ in range(60):
        background += drain(api, worker)
        api.advance(1)
    assert background == 54
    api.enqueue(1, lane=0)
    assert drain(api, worker) == 1


def test_a_call_that_was_not_made_burns_its_permit(api: QueueSession) -> None:
    """Released is not refunded: nobody knows what the upstream saw."""
    api.enqueue(20, lane=0)
    worker = api.register()
    for claim in api.claim_limited(worker):
        api.end(claim, "released", used=0)
    assert api.ask_limited(worker)[0].reason == "rate"


def test_what_was_used_survives_a_restart(api: QueueSession) -> None:
    """Declared again, it knows what was granted (G6)."""
    api.enqueue(20, lane=0)
    drain(api, api.register())
    api.limiter(rate_calls=60, rate_seconds=60, burst=10, reserve=0.1, permit_seconds=1)
    assert api.ask_limited(api.register())[0].reason == "rate"


def test_the_upstream_can_ask_for_silence(api: QueueSession) -> None:
    """Retry-After, or nothing remaining until a reset (G5)."""
    api.enqueue(20, lane=0)
    worker = api.register()
    assert api.value("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 30)")
    [waits] = api.ask_limited(worker)
    assert waits.reason == "upstream"
    assert waits.wait == pytest.approx(30, abs=0.01)
    api.advance(30.01)
    assert len(api.claim_limited(worker)) == 10
    api.value("SELECT livewell.observe_limiter('api', '', NULL, 0, 12, NULL)")
    assert api.ask_limited(worker)[0].wait == pytest.approx(12, abs=0.01)


def test_a_lower_limit_that_the_upstream_states_is_kept(api: QueueSession) -> None:
    """It tightens; a higher one than ours does not loosen."""
    api.enqueue(100, lane=0)
    worker = api.register()
    api.value("SELECT livewell.observe_limiter('api', '', 5, NULL, NULL, NULL)")
    assert drain(api, worker) == 5
    assert drain(api, worker) == 0
    api.value("SELECT livewell.observe_limiter('api', '', 5000, NULL, NULL, NULL)")
    api.advance(62.01)
    assert drain(api, worker) == 10


def test_more_permits_for_a_running_job(api: QueueSession) -> None:
    """job.permit(n): from the same rate; more than can ever go at once is refused, not waited for."""
    api.enqueue(1, lane=0)
    worker = api.register()
    [claim] = api.claim_limited(worker)
    ask = "SELECT answer, calls_max FROM livewell.take_permits(%s, %s, %s, %s)"
    assert api.rows(ask, worker, claim.id, claim.fence, 9) == [("granted", None)]
    assert api.rows(ask, worker, claim.id, claim.fence, 1) == [("wait", None)]
    assert api.rows(ask, worker, claim.id, claim.fence, 11) == [("refused", 10)]
    assert api.rows(ask, worker, claim.id, claim.fence - 1, 1) == [("fenced", None)]
