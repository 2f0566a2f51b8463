"""G3, R13: the breaker opens on the upstream's failures, lets one probe through, and knows whose outcome counts."""

from __future__ import annotations

import pytest

from tests.support.queue_sql import LimitedClaim, QueueSession


@pytest.fixture
def api(queue: QueueSession) -> QueueSession:
    """Opens after 3 in a row, or 5 that are half of the calls; for 60 s, doubling to 200."""
    queue.freeze()
    queue.limiter(
        breaker_failures=5,
        breaker_share=0.5,
        breaker_in_row=3,
        breaker_seconds=600,
        open_seconds=60,
        open_seconds_max=200,
    )
    queue.declare(limiter="api", attempts=100, base=0, cap=0)
    queue.enqueue(200, lane=0)
    return queue


def call(api: QueueSession, ended: str = "ok") -> LimitedClaim:
    """One call with this end."""
    [one] = api.claim_limited(api.register(), 1)
    finish(api, one, ended)
    return one


def finish(api: QueueSession, one: LimitedClaim, ended: str) -> None:
    if ended == "ok":
        api.end(one)
    else:
        api.end(
            one, "retry", ended=ended, delay_seconds=3600
        )  # else the clock, which stands still, makes it the next again


def state(api: QueueSession) -> str:
    return str(api.value("SELECT breaker FROM livewell.limiter_credential"))


def broken(api: QueueSession) -> None:
    for _ in range(3):
        call(api, "upstream")
    assert state(api) == "open"


def test_it_opens_after_failures_in_a_row(api: QueueSession) -> None:
    """From the first retries on (contract 15), and nothing is claimed while it is open."""
    broken(api)
    [waits] = api.ask_limited(api.register())
    assert (waits.id, waits.reason) == (0, "breaker")
    assert waits.wait == pytest.approx(60, abs=0.01)


def test_a_success_between_breaks_the_row_but_not_the_share(api: QueueSession) -> None:
    """Five failures that are half of the calls open it too."""
    for _ in range(4):
        call(api, "upstream")
        call(api)
    assert state(api) == "closed"
    call(api, "upstream")
    assert state(api) == "open"


def test_few_failures_among_many_calls_do_not_open_it(api: QueueSession) -> None:
    """Less than the share."""
    for _ in range(6):
        call(api, "upstream")
        for _ in range(2):
            call(api)
    assert state(api) == "closed"


@pytest.mark.parametrize("ended", ["data", "ours"])
def test_only_the_upstreams_fault_counts(api: QueueSession, ended: str) -> None:
    """Ten made-up symbols of one visitor must not stop everybody."""
    for _ in range(20):
        call(api, ended)
    assert state(api) == "closed"


def test_half_open_lets_exactly_one_probe_through(api: QueueSession) -> None:
    """The fleet waits for it."""
    broken(api)
    api.advance(60.01)
    [probe] = api.claim_limited(api.register(), 10)
    assert api.ask_limited(api.register())[0].reason == "probe"
    finish(api, probe, "ok")
    assert state(api) == "closed"
    assert len(api.claim_limited(api.register(), 10)) == 10


def test_a_probe_that_fails_opens_it_for_twice_as_long(api: QueueSession) -> None:
    """60, 120, then the cap."""
    broken(api)
    waits = 60.0
    for expected in (120, 200, 200):
        api.advance(waits + 0.01)
        call(api, "upstream")
        [row] = api.ask_limited(api.register())
        assert row.wait == pytest.approx(expected, abs=0.01)
        waits = float(row.wait or 0)


@pytest.mark.parametrize(("ended", "after"), [("data", "closed"), ("ours", "half_open")])
def test_what_another_end_of_the_probe_says(api: QueueSession, ended: str, after: str) -> None:
    """Data: it answered, so it is back. Ours: it says nothing, and another probe may go."""
    broken(api)
    api.advance(60.01)
    call(api, ended)
    assert state(api) == after
    assert len(api.claim_limited(api.register(), 1)) == 1


def test_a_dead_prober_frees_the_probe(api: QueueSession) -> None:
    """The probe is in flight only while a running job has its fence."""
    broken(api)
    api.advance(60.01)
    dying = api.register()
    api.claim_limited(dying, 1)
    api.expire(dying)
    api.recover(api.steady())
    assert len(api.claim_limited(api.register(), 10)) == 1
    assert api.ask_limited(api.register())[0].reason == "probe"


def test_calls_claimed_before_it_opened_move_nothing(api: QueueSession) -> None:
    """Neither a late success closes it, nor a late failure opens it again after it closed."""
    late = api.claim_limited(api.register(), 6)
    broken(api)
    finish(api, late[0], "ok")
    assert state(api) == "open"
    api.advance(60.01)
    call(api)
    assert state(api) == "closed"
    for one in late[1:]:
        finish(api, one, "upstream")
    assert state(api) == "closed"


def test_a_bandwidth_wall_opens_it_for_hours(api: QueueSession) -> None:
    """At once: the next call would be refused as well."""
    call(api, "wall")
    assert api.ask_limited(api.register())[0].wait == pytest.approx(6 * 3600, abs=0.01)


def test_a_shared_call_counts_once(queue: QueueSession) -> None:
    """Ten jobs in one call that failed are one failure."""
    queue.limiter(breaker_failures=5, breaker_share=0.1, breaker_in_row=3)
    queue.declare(limiter="api", attempts=100)
    queue.enqueue(10, kind="quote", lane=0)
    for one in queue.claim_limited(queue.register(), batches={"quote": 10}):
        details = {"ended": "upstream"} if one.call == one.fence else {}
        queue.end(one, "retry", **details)
    assert state(queue) == "closed"


def test_it_is_still_open_after_a_restart(api: QueueSession) -> None:
    """Declared again, nothing is forgotten (G6)."""
    broken(api)
    api.limiter(breaker_failures=5, breaker_share=0.5, breaker_in_row=3)
    assert api.ask_limited(api.register())[0].reason == "breaker"


def test_the_other_credential_goes_on(queue: QueueSession) -> None:
    """A breaker is one credential's."""
    queue.limiter(breaker_failures=1, breaker_share=0, breaker_in_row=1, credentials=["one", "two"])
    queue.declare(limiter="api")
    queue.enqueue(10, lane=0)
    [bad] = queue.claim_limited(queue.register(), 1)
    queue.end(bad, "retry", ended="upstream")
    assert {c.credential for c in queue.claim_limited(queue.register(), 5)} == {"one", "two"} - {bad.credential}
