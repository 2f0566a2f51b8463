"""G1: the rate, as claims feel it. Time travels: the database's clock is the only one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.queue_sql import QueueSession


@pytest.fixture
def api(queue: QueueSession) -> QueueSession:
    """Sixty calls a minute, ten at once, a tenth for people; permits last a second.

    The clock stands.
    """
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


def test_never_more_than_the_rate_in_a_window(api: QueueSession) -> None:
    """Sixty in any minute, and nearly all of them, where answers come at once."""
    api.enqueue(300, lane=0)
    worker = api.register()
    grants: list[tuple[float, int]] = []
    for step in range(400):
        grants += [(step * 0.5, drain(api, worker))]
        api.advance(0.5)
    for at, _ in grants:
        assert sum(n for when, n in grants if at <= when < at + 60) <= 60
    assert sum(n for _, n in grants) >= 0.97 * 60 * 200 / 60


def test_a_call_counts_until_its_answer_is_booked_and_a_window_more(api: QueueSession) -> None:
    """R12: what was granted ten seconds ago and has only now arrived counts from now.

    Seen to fail with calls that count from their grant (grant_calls): 0 of the 10 were counted 59.9
    s after their answers.
    """
    api.enqueue(200, lane=0)
    worker = api.register()
    flying = api.claim_limited(worker, 10)
    api.advance(25)
    for claim in flying:
        api.end(claim)
    api.advance(59.9)
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(10,)]
    api.advance(0.2)
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(0,)]


@pytest.mark.parametrize(
    ("ended", "used", "seconds"),
    [
        ("ok", 5, 60),
        ("data", 0, 60),
        ("wall", 5, 60),
        ("ours", 0, 60),
        ("ours", None, 91),
        ("upstream", 0, 91),
        ("upstream", None, 91),
    ],
)
def test_a_call_without_an_answer_counts_as_long_as_it_could_still_arrive(
    api: QueueSession, *, ended: str, used: int | None, seconds: float
) -> None:
    """Answered, or surely not made: a window from its end.

    Otherwise from grant + permit (1 s) + deadline (30 s) on.
    """
    api.enqueue(1, lane=0)
    [claim] = api.claim_limited(api.register())
    api.end(claim, "retry", ended=ended, used=used)
    api.advance(seconds - 0.1)
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(1,)]
    api.advance(0.2)
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(0,)]


def lose(api: QueueSession, worker: int) -> None:
    undertaker = api.steady()
    api.expire(worker)
    assert api.recover(undertaker)[1] == 1


def stop(api: QueueSession, worker: int) -> None:
    assert api.release(worker) == 1


def hand_back(api: QueueSession, worker: int) -> None:
    assert api.reconcile(worker, mark=api.mark()) == 1


@pytest.mark.parametrize("end", [lose, stop, hand_back])
def test_a_call_of_which_nobody_knows_the_end_counts_as_long_as_it_could_still_arrive(
    api: QueueSession, end: Callable[[QueueSession, int], None]
) -> None:
    """Its worker died, stopped, or never heard of it. Nothing stays in flight."""
    api.enqueue(1, lane=0)
    worker = api.register()
    assert len(api.claim_limited(worker)) == 1
    end(api, worker)
    assert api.value("SELECT count(*) FROM livewell.limiter_flight") == 0
    api.advance(90.9)
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(1,)]
    api.advance(0.2)
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(0,)]


def test_a_fenced_report_does_not_shorten_what_counts(api: QueueSession) -> None:
    """Whoever was buried says that it was answered; when, nobody knows.

    Its job runs again, and both calls count.
    """
    api.enqueue(1, lane=0)
    zombie = api.register()
    [claim] = api.claim_limited(zombie)
    lose(api, zombie)
    assert api.end(claim, used=7) == [(claim.id, claim.fence)]
    assert len(api.claim_limited(api.register(), empty=True)) == 1
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(2,)]


def test_what_is_in_flight_is_asked_for_again_when_it_may_have_been_answered(api: QueueSession) -> None:
    """All of the limit is in flight.

    Answered now, it is free in a minute, so nobody is told to wait for longer.
    """
    api.value("SELECT livewell.observe_limiter('api', '', 5, NULL, NULL, NULL)")
    api.enqueue(20, lane=0)
    worker = api.register()
    assert len(api.claim_limited(worker)) == 5
    assert api.ask_limited(worker)[0].wait == pytest.approx(60, abs=0.01)
    api.advance(20)
    assert api.ask_limited(worker)[0].wait == pytest.approx(60, abs=0.01)


def test_a_window_has_a_thousand_rows_at_most(api: QueueSession) -> None:
    """Calls that end within a thousandth of the window share a row."""
    api.limiter(rate_calls=86400, rate_seconds=86400, burst=100, reserve=0, permit_seconds=1)
    api.enqueue(60, lane=0)
    worker = api.register()
    for _ in range(60):
        api.end(api.claim_limited(worker, 1)[0])
        api.advance(1)
    assert api.value("SELECT count(*) FROM livewell.limiter_grant") <= 2
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(60,)]


def test_the_background_leaves_the_reserve_alone(api: QueueSession) -> None:
    """54 of 60 for lane 1; people still get theirs."""
    api.enqueue(100, lane=1)
    worker = api.register()
    background = 0
    for _ in range(59):
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
    """job.permit(n): from the same rate.

    More than can ever go at once is refused, not waited for.
    """
    api.enqueue(1, lane=0)
    worker = api.register()
    [claim] = api.claim_limited(worker)
    ask = "SELECT answer, calls_max FROM livewell.take_permits(%s, %s, %s, %s)"
    assert api.rows(ask, worker, claim.id, claim.fence, 9) == [("granted", None)]
    assert api.rows(ask, worker, claim.id, claim.fence, 1) == [("wait", None)]
    assert api.rows(ask, worker, claim.id, claim.fence, 11) == [("refused", 10)]
    assert api.rows(ask, worker, claim.id, claim.fence - 1, 1) == [("fenced", None)]


def test_a_job_says_that_its_calls_were_answered(api: QueueSession) -> None:
    """Its first call and nine more: in flight until it says so, then a window.

    Without a word they count until they can no longer arrive.
    """
    api.enqueue(1, lane=0)
    worker = api.register()
    [claim] = api.claim_limited(worker)
    ask = "SELECT answer FROM livewell.take_permits(%s, %s, %s, %s, %s)"
    assert api.rows(ask, worker, claim.id, claim.fence, 9, False) == [("granted",)]
    assert api.rows("SELECT calls FROM livewell.limiter_flight ORDER BY calls") == [(1,), (9,)]
    api.advance(15)
    assert api.rows(ask, worker, claim.id, claim.fence, 1, True) == [("granted",)]
    assert api.rows("SELECT calls FROM livewell.limiter_flight") == [(1,)]
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(11,)]
    api.advance(60.1)
    assert api.rows("SELECT spent FROM livewell.list_limiters()") == [(1,)]
