"""read_through: one round trip for value, verdict and demand.

And what strangers cannot make it do.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.support.store_sql import QUEUE, StoreSession, ago, failed, result, value

COLUMNS = ("demand", "queue", "verdict", "version", "status_version", "reason", "value")


@pytest.fixture
def store(queue_dsn: str) -> Iterator[StoreSession]:
    """One type with its table; the clock stands still."""
    with StoreSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        session.freeze()
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()


def read(
    session: StoreSession,
    key: str = "AAPL",
    *,
    of: str = "quote",
    max_age: float | None = None,
    user: str | None = None,
    cold: int = 3,
) -> dict[str, Any]:
    """Call it; answers by name."""
    rows = session.rows(
        f"SELECT {', '.join(COLUMNS)} FROM livewell.read_through(%s, %s, %s, %s, %s)", of, key, max_age, user, cold
    )
    return dict(zip(COLUMNS, rows[0], strict=True))


def jobs(session: StoreSession) -> list[tuple[Any, ...]]:
    return session.rows("SELECT unique_key, lane, state::text FROM livewell.job ORDER BY unique_key")


def test_a_key_nobody_knows_is_queued_for_people_at_once(store: StoreSession) -> None:
    """No hop through the due check; the key is out of its sight for two minutes."""
    found = read(store)
    assert (found["demand"], found["queue"], found["verdict"], found["value"]) == ("queued", QUEUE, "missing", None)
    assert jobs(store) == [("quote:AAPL", 0, "ready")]
    assert store.ledger("AAPL", "due_at", "demanded_at") == (store.now() + timedelta(minutes=2), store.now())


def test_concurrent_readers_of_one_missing_key_cause_one_job(store: StoreSession) -> None:
    """Story 8: the second and the thousandth reader wait for the first one's refresh."""
    assert [read(store)["demand"] for _ in range(5)] == ["queued", *["waiting"] * 4]
    assert len(jobs(store)) == 1


def test_a_fresh_value_is_given_without_a_demand(store: StoreSession) -> None:
    """By the type's own rule, or by the age that the reader asks for."""
    store.store(value(store.claimed(), 1, ago(store, 5)))
    assert read(store) == {
        "demand": "none",
        "queue": QUEUE,
        "verdict": "fresh",
        "version": 1,
        "status_version": 1,
        "reason": None,
        "value": {"price": 1},
    }
    store.advance(30)
    assert read(store, max_age=31)["demand"] == "none"
    assert jobs(store) == []
    assert read(store, max_age=29)["demand"] == "queued"


def test_a_stale_value_is_given_and_a_better_one_demanded(store: StoreSession) -> None:
    """What there is, with its true verdict, at once."""
    store.store(value(store.claimed(), 1, ago(store, 5)))
    store.advance(61)
    found = read(store)
    assert (found["demand"], found["verdict"], found["value"]) == ("queued", "stale", {"price": 1})


def test_a_known_absence_is_answered_without_a_call_until_it_is_forgotten(store: StoreSession) -> None:
    """A negative entry has its own time to live; then the upstream is asked again."""
    store.store(result(store.claimed("NOPE"), "NOPE", outcome="missing"))
    assert read(store, "NOPE")["demand"] == "missing"
    assert read(store, "NOPE", max_age=0)["demand"] == "missing"
    store.advance(3601)
    assert read(store, "NOPE")["demand"] == "queued"


def test_a_failing_key_is_not_queued_before_its_back_off(store: StoreSession) -> None:
    """New readers do not bypass it; afterwards one of them is enough."""
    claim = store.claimed()
    store.rows("UPDATE livewell.job SET attempt = max_attempts")
    store.store(failed(claim, "status"))
    found = read(store)
    assert (found["demand"], found["verdict"], found["reason"]) == ("backed_off", "failing", "status")
    assert jobs(store) == []
    store.advance(61)
    assert read(store)["demand"] == "queued"


def test_a_retry_that_is_under_way_is_waited_for(store: StoreSession) -> None:
    """Between attempts the job is delayed: readers neither hasten nor double it."""
    store.store(failed(store.claimed(), "deadline"))
    assert read(store)["demand"] == "waiting"
    assert jobs(store) == [("quote:AAPL", 0, "delayed")]


def test_a_reader_raises_a_job_that_waits_in_the_background(store: StoreSession) -> None:
    """Somebody is waiting now: lane 0."""
    store.ask("AAPL")
    store.rows("UPDATE livewell.job SET lane = 1")
    assert read(store)["demand"] == "waiting"
    assert jobs(store) == [("quote:AAPL", 0, "ready")]


@pytest.mark.parametrize("key", ["lower", "A B", "A/B", "../..", "A\r\nHost: x", "A" * 21, "Ä", "%00"])
def test_a_key_that_does_not_fit_the_pattern_leaves_nothing_behind(store: StoreSession, key: str) -> None:
    """Refused before anything is written or asked for."""
    assert read(store, key)["demand"] == "bad_key"
    assert store.value("SELECT count(*) FROM livewell.ledger") == 0


def test_an_unknown_type_is_an_answer(store: StoreSession) -> None:
    """Not an exception, and nothing is written."""
    assert read(store, of="nosuch")["demand"] == "unknown_type"


def test_unknown_keys_have_a_budget_per_user_and_minute(store: StoreSession) -> None:
    """A stranger who makes up symbols is stopped; others, and keys that are known, are not."""
    store.freeze()  # the budget is per minute of the clock
    assert [read(store, f"X{n}", user="eve")["demand"] for n in range(5)] == [*["queued"] * 3, *["cold_budget"] * 2]
    assert store.value("SELECT count(*) FROM livewell.ledger") == 3
    assert read(store, "X0", user="eve")["demand"] == "waiting"
    assert read(store, "Y", user="ann")["demand"] == "queued"
    store.advance(60)
    assert read(store, "X9", user="eve")["demand"] == "queued"


def test_a_parked_or_paused_type_is_read_and_not_asked_for(store: StoreSession) -> None:
    """What is stored is given; no job is made."""
    store.rows("UPDATE livewell.data_type SET parked_reason = 'not in the plan'")
    assert read(store)["demand"] == "parked"
    store.rows("UPDATE livewell.data_type SET parked_reason = NULL, paused_at = livewell.now()")
    assert read(store)["demand"] == "paused"
    store.rows(
        "UPDATE livewell.data_type SET paused_at = NULL; UPDATE livewell.upstream SET paused_at = livewell.now()"
    )
    assert read(store)["demand"] == "paused"
    assert jobs(store) == []


def test_behind_a_long_queue_the_due_check_puts_readers_in_order(store: StoreSession) -> None:
    """An own place at the end of the queue would gain nothing: the key is due now instead."""
    store.ask(*(f"K{n}" for n in range(200)))
    assert read(store)["demand"] == "due"
    assert store.ledger("AAPL", "due_at") == (store.now(),)


def test_keys_of_a_batch_type_may_share_a_call(store: StoreSession) -> None:
    """Twenty readers of twenty keys at once are one call, or two where a number ends between them.

    Never more keys than a call may have.
    """
    store.rows("UPDATE livewell.data_type SET keys_max = 50")
    for n in range(20):
        read(store, f"K{n}")
    claims = store.take(store.register(queues=[QUEUE]))
    assert len(claims) == 20
    assert len({claim.call for claim in claims.values()}) <= 2


def test_read_readings_gives_only_what_differs(store: StoreSession) -> None:
    """By status and verdict; and the value only where it is another one."""
    store.store(value(store.claimed(), 1, ago(store, 5)))

    def changes(known: int, verdict: str | None, version: int) -> list[tuple[Any, ...]]:
        return store.rows(
            "SELECT key, verdict, version, status_version, value FROM livewell.read_readings('{quote,quote}', "
            "'{AAPL,NEW}', %s, %s, %s)",
            [known, 0],
            [verdict, "missing"],
            [version, 0],
        )

    assert changes(-1, None, -1) == [("AAPL", "fresh", 1, 1, {"price": 1})]
    assert changes(1, "fresh", 1) == []
    store.advance(61)
    assert changes(1, "fresh", 1) == [("AAPL", "stale", 1, 1, None)]


SHUT = {
    "breaker": "UPDATE livewell.limiter_credential SET breaker = 'open', open_until = livewell.now() + interval "
    "'1 minute' WHERE limiter = 'api'",
    "upstream": "UPDATE livewell.limiter_credential SET quiet_until = livewell.now() + interval '1 minute' "
    "WHERE limiter = 'api'",
    "budget": "INSERT INTO livewell.limiter_usage (limiter, credential, since, units, calls) SELECT 'api', "
    "name, date_trunc('hour', livewell.now()), 9400, 1 FROM livewell.limiter_credential WHERE limiter "
    "= 'api'",
}


def shut(store: StoreSession, reason: str) -> None:
    """An upstream with a budget of 10,000 bytes and a breaker, which lets nobody through."""
    store.limiter("api", budget_units=10_000, budget_unit="bytes", budget_seconds=86400, breaker_failures=10)
    store.rows(SHUT[reason])


def read_key(store: StoreSession, key: str = "AAPL", *, of: str = "quote", user: str | None = None) -> tuple[Any, ...]:
    """What became of the demand, why, and in how many seconds to ask again."""
    [found] = store.rows(
        "SELECT demand, throttled, extract(epoch FROM retry_at - livewell.now())::float8 FROM "
        "livewell.read_key(%s, %s, NULL, %s)",
        of,
        key,
        user,
    )
    return found


@pytest.mark.parametrize("reason", SHUT)
def test_what_cannot_be_served_now_is_throttled_and_queues_nothing(store: StoreSession, reason: str) -> None:
    """X5, R11, contract 6: seen failing without read_through's question to read_throttle.

    The first reader was told "queued".
    """
    shut(store, reason)

    for n in range(30):
        demand, throttled, seconds = read_key(store, f"COLD{n}", user="eve")
        assert (demand, throttled) == ("throttled", reason)
        assert seconds >= 1
    assert jobs(store) == []
    assert store.value("SELECT count(*) FROM livewell.ledger") == 0
    assert store.value("SELECT count(*) FROM livewell.viewer") == 0  # nor did it cost eve's budget of unknown keys


@pytest.mark.parametrize("reason", SHUT)
def test_one_upstream_that_is_shut_stops_no_other(store: StoreSession, reason: str) -> None:
    """X5: the mixture: one shut, another open."""
    shut(store, reason)
    store.upstream("other")
    store.type("profile", upstream="other")

    assert read_key(store)[0] == "throttled"
    assert read_key(store, of="profile") == ("queued", None, None)


def test_a_job_that_waits_for_a_shut_upstream_is_not_waited_for(store: StoreSession) -> None:
    """X5: queued before the breaker opened.

    Whoever comes now is told, and when it has opened again it is waited for.
    """
    assert read_key(store)[0] == "queued"
    shut(store, "breaker")
    assert read_key(store)[:2] == ("throttled", "breaker")
    store.rows("UPDATE livewell.limiter_credential SET breaker = 'closed', open_until = NULL")

    assert read_key(store)[0] == "waiting"


def test_what_is_stored_is_shown_with_its_true_verdict_while_shut(store: StoreSession) -> None:
    """X5: stale is stale, and fresh enough asks nobody."""
    store.keep("OLD", fetched_at=ago(store, 3600), checked_at=ago(store, 3600), source_at=ago(store, 3600))
    store.keep("NEW", fetched_at=store.now(), checked_at=store.now(), source_at=store.now())
    shut(store, "upstream")

    found = [store.rows("SELECT verdict, demand FROM livewell.read_key('quote', %s)", key)[0] for key in ("OLD", "NEW")]
    assert found == [("stale", "throttled"), ("fresh", "none")]


def test_backed_off_and_paused_say_until_when(store: StoreSession) -> None:
    """X5: as far as anybody knows."""
    store.keep("BAD", failures=1, retry_at=store.now() + timedelta(minutes=5))
    assert read_key(store, "BAD") == ("backed_off", "backed_off", 300)
    store.rows("UPDATE livewell.data_type SET paused_at = livewell.now()")
    assert read_key(store) == ("paused", "paused", None)
