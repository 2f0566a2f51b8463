"""R13, G3, X10: no single key, job or answer moves the breaker of everybody.

Seen failing on 0.5.0, where every failed attempt counted: before one key, or one job, had failed
twenty times, no call was granted any more.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.queue_sql import LimitedClaim, QueueSession


@pytest.fixture
def api(queue: QueueSession) -> QueueSession:
    """Opens after 3 in a row, or 5 that are half of the calls; for 60 s, doubling to 200."""
    queue.freeze()
    queue.limiter(
        breaker_failures=5, breaker_share=0.5, breaker_in_row=3, open_seconds=60, open_seconds_max=200, rate_calls=None
    )
    queue.declare(limiter="api", attempts=100, base=0, cap=0)
    return queue


def ask(api: QueueSession, key: str) -> LimitedClaim:
    """Queue a job for this key and claim it."""
    [job] = api.enqueue(1, lane=0, group_key=key)
    found = {claim.id: claim for claim in api.claim_limited(api.register(), 100)}
    return found[job]


def end(api: QueueSession, claim: LimitedClaim, ended: str, **details: Any) -> None:
    if ended == "ok":
        api.end(claim)
    else:
        api.end(claim, "refused", ended=ended, **details)


def call(api: QueueSession, key: str, ended: str = "key", **details: Any) -> None:
    """One call for one key, with this end."""
    end(api, ask(api, key), ended, **details)


def breaker(api: QueueSession) -> str:
    return str(api.value("SELECT breaker FROM livewell.limiter_credential"))


def why_open(api: QueueSession) -> tuple[Any, ...]:
    return api.rows("SELECT opened_at = livewell.now(), opened_reason, opened_keys FROM livewell.limiter_credential")[0]


def doubted(api: QueueSession) -> None:
    """Three keys fail in a row, each on its own."""
    for key in ("A", "B", "C"):
        call(api, key)
    assert breaker(api) == "half_open"


def opened(api: QueueSession) -> None:
    """And three more."""
    doubted(api)
    for key in ("D", "E", "F"):
        call(api, key)
    assert breaker(api) == "open"


@pytest.mark.parametrize("ended", ["key", "upstream"])
def test_one_key_that_fails_for_ever_counts_once(api: QueueSession, ended: str) -> None:
    """However often it is tried, and whatever else is called."""
    for _ in range(20):
        call(api, "BAD", ended)
    assert breaker(api) == "closed"
    assert api.value("SELECT failures_in_row FROM livewell.limiter_credential") == 1


def test_one_poison_job_of_a_users_queue_counts_once(api: QueueSession) -> None:
    """It has no key: it is its own."""
    [job] = api.enqueue(1, lane=0)
    for _ in range(20):
        [claim] = api.claim_limited(api.register(), 1)
        assert claim.id == job
        api.end(claim, "retry", ended="upstream", delay_seconds=0)
    assert breaker(api) == "closed"


def test_one_key_that_fails_every_other_time_is_one_key(api: QueueSession) -> None:
    """Half of all calls fail, and it is still nobody else's trouble."""
    for _ in range(20):
        call(api, "BAD")
        call(api, "BAD", "ok")
    assert breaker(api) == "closed"


def test_a_key_that_never_had_data_says_nothing(api: QueueSession) -> None:
    """Strangers make keys up."""
    for n in range(20):
        call(api, f"MADEUP{n}", "new")
    assert breaker(api) == "closed"


def test_several_keys_in_a_row_raise_a_doubt_and_one_good_probe_ends_it(api: QueueSession) -> None:
    """Nobody waits a minute for it: the next call is the probe."""
    doubted(api)
    assert why_open(api) == (True, "key", 3)

    call(api, "GOOD", "ok")

    assert breaker(api) == "closed"
    assert why_open(api) == (None, None, None)


def test_as_many_again_open_it(api: QueueSession) -> None:
    """Six different keys and no answer between them: that is the upstream.

    What was wrong with it is kept.
    """
    doubted(api)
    for key in ("D", "E"):
        call(api, key)
        assert breaker(api) == "half_open"
    call(api, "F", cause="transient")
    assert breaker(api) == "open"
    assert why_open(api) == (True, "transient", 6)
    assert api.ask_limited(api.register())[0].reason == "nothing"
    api.enqueue(1, lane=0)
    assert api.ask_limited(api.register())[0].wait == pytest.approx(60, abs=0.01)


def test_failures_that_are_not_about_a_key_count_each_time(api: QueueSession) -> None:
    """No connection is no connection, whoever wanted it."""
    for _ in range(3):
        call(api, "SAME", "outage", cause="connection")
    assert breaker(api) == "open"
    assert why_open(api) == (True, "connection", 0)


def test_the_probe_is_never_a_failing_key_while_there_is_another(api: QueueSession) -> None:
    """Although it was first in the queue."""
    opened(api)
    api.advance(60.01)
    api.enqueue(3, lane=0, group_key="A")
    [good] = api.enqueue(1, lane=1, group_key="GOOD")

    [probe] = api.claim_limited(api.register(), 10)

    assert probe.id == good
    end(api, probe, "ok")
    assert breaker(api) == "closed"


def test_keys_that_are_failing_wait_a_moment_for_others(api: QueueSession) -> None:
    """Then the one that has failed least, and longest ago.

    Its failure keeps no other key from probing.
    """
    opened(api)
    api.enqueue(1, lane=0, group_key="A")
    [failed_last] = api.enqueue(1, lane=0, group_key="F")
    api.rows("UPDATE livewell.limiter_failing SET failures = 2 WHERE key = 'A'")
    api.advance(60.01)
    [waits] = api.ask_limited(api.register())
    assert waits.reason == "breaker"
    assert waits.wait == pytest.approx(15, abs=0.02)

    api.advance(15)
    [probe] = api.claim_limited(api.register(), 10)
    assert probe.id == failed_last
    end(api, probe, "key")
    assert api.ask_limited(api.register())[0].wait == pytest.approx(120, abs=0.01)
    call(api, "GOOD", "ok")
    assert breaker(api) == "closed"


def test_a_total_outage_in_which_every_key_fails_recovers(api: QueueSession) -> None:
    """Every key has its turn as the probe; the first that is well closes it."""
    opened(api)
    keys = ["A", "B", "C", "D", "E", "F"]
    jobs = {api.enqueue(1, lane=0, group_key=key)[0]: key for key in keys}
    probed = []
    for _ in range(5):
        api.advance(216)
        [probe] = api.claim_limited(api.register(), 10)
        probed.append(jobs[probe.id])
        api.end(probe, "retry", ended="key", delay_seconds=0)
    assert len(set(probed)) == 5
    api.advance(216)
    [probe] = api.claim_limited(api.register(), 10)
    end(api, probe, "ok")
    assert jobs[probe.id] not in probed
    assert breaker(api) == "closed"
    assert len(api.claim_limited(api.register(), 10)) == 5


def test_what_is_kept_of_failing_keys_is_pruned(api: QueueSession) -> None:
    """After a day nobody looks at it."""
    call(api, "BAD")
    call(api, "BAD", "ok")
    api.advance(86_000)
    call(api, "OTHER")
    api.advance(500)

    api.value("SELECT livewell.prune_limits(100)")

    assert api.column("SELECT key FROM livewell.limiter_failing") == ["OTHER"]


# -- silences ------------------------------------------------------------------------------------


def silence(api: QueueSession, seconds: float) -> tuple[Any, ...]:
    """The upstream asks for silence.

    Since when, what was asked for, and for how long it is believed.
    """
    api.value("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, %s)", seconds)
    return api.rows(
        "SELECT extract(epoch FROM livewell.now() - quiet_since)::float8, quiet_asked_seconds, extract(epoch "
        "FROM quiet_until - livewell.now())::float8 FROM livewell.limiter_credential"
    )[0]


def test_an_absurd_retry_after_is_believed_for_a_quarter_of_an_hour(api: QueueSession) -> None:
    """Then one call asks again, and if that is answered all go on."""
    api.enqueue(10, lane=0)
    assert silence(api, 1e9) == (0, 1e9, 900)
    [waits] = api.ask_limited(api.register())
    assert waits.reason == "upstream"
    assert waits.wait == pytest.approx(900, abs=0.01)

    api.advance(900.01)
    [probe] = api.claim_limited(api.register(), 10)
    assert api.ask_limited(api.register())[0].reason == "probe"
    end(api, probe, "ok")
    assert len(api.claim_limited(api.register(), 10)) == 9


def test_asked_again_it_may_ask_for_silence_again(api: QueueSession) -> None:
    """A wall is nobody's failure: the probe is free again, and the silence goes on."""
    api.enqueue(2, lane=0)
    silence(api, 86_400)
    api.advance(900.01)
    [probe] = api.claim_limited(api.register(), 10)
    assert silence(api, 86_400) == (0, 86_400, 900)
    end(api, probe, "ours")
    assert api.ask_limited(api.register())[0].reason == "upstream"


def test_a_silence_that_is_short_enough_is_honoured_to_the_second(api: QueueSession) -> None:
    """And needs no probe; a second one while it lasts only lengthens it."""
    api.enqueue(10, lane=0)
    assert silence(api, 60) == (0, 60, 60)
    api.advance(30)
    assert silence(api, 10) == (30, 60, 30)
    api.advance(30.01)
    assert len(api.claim_limited(api.register(), 10)) == 10


def test_the_bound_is_a_setting(queue: QueueSession) -> None:
    """A day for who wants it; without a breaker it just ends."""
    queue.limiter(quiet_seconds_max=86_400)
    queue.declare(limiter="api")
    assert silence(queue, 90_000)[2] == pytest.approx(86_400, abs=5)
    assert breaker(queue) == "closed"
