"""store_refreshes: what becomes of an answer, of the ledger, of the bytes and of the job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from tests.support.store_sql import KIND, QUEUE, Answered, StoreSession, ago, failed, result, value


@pytest.fixture
def store(queue_dsn: str) -> Iterator[StoreSession]:
    """A session on the shared database, everything empty but one type with its table.

    The clock stands still.
    """
    with StoreSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        session.freeze()
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()


# -- values --------------------------------------------------------------------------------------


def test_a_value_is_stored_with_its_three_times(store: StoreSession) -> None:
    """Source, fetch and check time are three things.

    The job is finished and the key due when it goes stale.
    """
    claim = store.claimed()
    source = ago(store, 30)
    assert store.store(value(claim, 231.4, source)) == [Answered("stored", None)]
    now = store.now()
    assert store.price() == 231.4
    assert store.ledger("AAPL", "version", "status_version", "source_at", "fetched_at", "checked_at", "due_at") == (
        1,
        1,
        source,
        now,
        now,
        now + timedelta(minutes=1),
    )
    assert store.state(claim.id) == "succeeded"
    assert store.verdict() == "fresh"


def test_an_answer_is_as_old_as_its_call(store: StoreSession) -> None:
    """It lay in this process for four seconds: it was checked four seconds ago."""
    claim = store.claimed()
    store.store(value(claim, 1, ago(store, 30), age_seconds=4))
    assert store.ledger("AAPL", "checked_at", "fetched_at") == (ago(store, 4), ago(store, 4))


def test_the_same_content_again_writes_no_row_and_moves_the_ledger(store: StoreSession) -> None:
    """Unchanged: checked_at and status_version move, version and fetched_at do not."""
    source = ago(store, 30)
    store.store(value(store.claimed(), 1, source))
    before = store.value("SELECT xmin::text FROM livewell_data.quote")
    fetched = store.now()
    store.advance(60)
    assert store.store(value(store.claimed(), 1, source)) == [Answered("unchanged", None)]
    assert store.value("SELECT xmin::text FROM livewell_data.quote") == before
    assert store.ledger("AAPL", "version", "status_version", "fetched_at", "checked_at") == (1, 2, fetched, store.now())


def test_an_older_source_is_refused_and_confirms_nothing(store: StoreSession) -> None:
    """Counted, no error of the job, and the check time is not laundered.

    The value goes on ageing.
    """
    store.store(value(store.claimed(), 2, ago(store, 10)))
    checked = store.now()
    store.advance(90)
    claim = store.claimed()
    assert store.store(value(claim, 1, ago(store, 600))) == [Answered("older", None)]
    assert store.price() == 2
    assert store.ledger("AAPL", "checked_at", "version") == (checked, 1)
    assert store.verdict() == "stale"
    assert store.state(claim.id) == "succeeded"
    assert store.counts() == {"stored": 1, "older": 1}
    assert store.ledger("AAPL", "due_at") == (store.now() + timedelta(minutes=1),)


def test_older_answers_are_asked_for_ever_more_seldom(store: StoreSession) -> None:
    """A replica that lags for hours costs a call after each doubling of the time, up to six hours."""
    store.store(value(store.claimed(), 2, ago(store, 10)))
    gaps = []
    for _ in range(12):
        store.advance(
            store.value("SELECT extract(epoch FROM due_at - livewell.now())::float8 + 1 FROM livewell.ledger")
        )
        store.store(value(store.claimed(), 1, ago(store, 86400)))
        gaps.append(store.value("SELECT round(extract(epoch FROM due_at - livewell.now()) / 60) FROM livewell.ledger"))
    assert gaps == sorted(gaps)
    assert gaps[-1] == 360


def test_equal_time_and_other_content_is_a_correction(store: StoreSession) -> None:
    """Dates do not move when figures are corrected: stored, and counted as corrected."""
    source = ago(store, 30)
    store.store(value(store.claimed(), 1, source))
    assert store.store(value(store.claimed(), 2, source)) == [Answered("stored", "corrected")]
    assert store.price() == 2
    assert store.counts() == {"stored": 1, "corrected": 1}


def test_without_a_source_time_the_content_decides(store: StoreSession) -> None:
    """Nobody can tell which is newer; the last one fetched by the owner of the job counts."""
    store.rows("UPDATE livewell.data_type SET has_source_time = false")
    store.store(value(store.claimed(), 1, None))
    assert store.store(value(store.claimed(), 1, None)) == [Answered("unchanged", None)]
    assert store.store(value(store.claimed(), 2, None)) == [Answered("stored", None)]
    assert store.verdict() == "unverifiable"


def test_a_value_without_the_time_its_type_has_is_refused(store: StoreSession) -> None:
    """The last line of defence behind validate."""
    assert store.store(value(store.claimed(), 1, None)) == [Answered("rejected", "no_source_time")]
    assert store.price() is None


def test_not_modified_confirms_exactly_what_is_stored(store: StoreSession) -> None:
    """A 304 about the stored content verifies it.

    About anything else it is asked for again without the condition.
    """
    first = value(store.claimed(), 1, ago(store, 30), etag='"a"')
    store.store(first)
    store.advance(60)
    assert store.store(result(store.claimed(), outcome="same", hash=first["hash"])) == [Answered("unchanged", None)]
    assert store.ledger("AAPL", "checked_at", "etag") == (store.now(), '"a"')
    claim = store.claimed()
    assert store.store(result(claim, outcome="same", hash="00" * 32)) == [Answered("rejected", "forgotten")]
    assert store.state(claim.id) == "ready"


# -- no such key, failures, walls ----------------------------------------------------------------


def test_an_empty_answer_for_a_key_never_seen_is_a_negative_entry(store: StoreSession) -> None:
    """There is no such key: believed for negative_ttl, no failure of anybody."""
    claim = store.claimed("NOPE")
    assert store.store(result(claim, "NOPE", outcome="missing")) == [Answered("missing", None)]
    assert store.ledger("NOPE", "missing", "failures", "due_at") == (True, 0, store.now() + timedelta(hours=1))
    assert store.verdict("NOPE") == "missing"
    assert store.state(claim.id) == "succeeded"


def test_an_empty_answer_for_a_key_that_had_data_is_the_upstreams_fault(store: StoreSession) -> None:
    """F-D1: the value is kept, the job is retried, and the breaker sees it."""
    store.rows("DELETE FROM livewell.limiter")
    store.upstream(breaker_failures=10)
    store.store(value(store.claimed(), 1, ago(store, 30)))
    store.advance(61)
    claim = store.claimed()
    assert store.store(result(claim, outcome="missing")) == [Answered("rejected", "empty")]
    assert store.price() == 1
    assert store.ledger("AAPL", "missing", "reason") == (False, "empty")
    assert store.verdict() == "failing"
    assert store.state(claim.id) == "delayed"
    assert store.value("SELECT failures_in_row FROM livewell.limiter_credential") == 1


def test_a_failure_keeps_the_value_and_says_why(store: StoreSession) -> None:
    """Reason, words, since when.

    The age of the value is untouched and its verdict stays while it is not stale.
    """
    store.store(value(store.claimed(), 1, ago(store, 30)))
    store.advance(10)
    claim = store.claimed()
    assert store.store(failed(claim, "deadline")) == [Answered("rejected", "deadline")]
    assert store.ledger("AAPL", "reason", "error", "failing_since", "failures", "status_version", "checked_at") == (
        "deadline",
        "deadline seen",
        store.now(),
        0,
        2,
        ago(store, 10),
    )
    assert store.verdict() == "fresh"
    store.advance(60)
    assert store.verdict() == "failing"
    assert store.state(claim.id) == "delayed"


def test_the_last_attempt_backs_the_key_off_doubling_up_to_six_hours(store: StoreSession) -> None:
    """R9: 1 min · 2ⁿ ≤ 6 h after each dead letter, and one success clears it."""
    gaps = []
    for _ in range(11):
        claim = store.claimed()
        store.rows("UPDATE livewell.job SET attempt = max_attempts WHERE id = %s", claim.id)
        store.store(failed(claim, "status"))
        assert store.state(claim.id) == "failed"
        retry, due = store.ledger("AAPL", "retry_at", "due_at")
        assert retry == due
        gaps.append((retry - store.now()).total_seconds() / 60)
    assert gaps == [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360]
    store.store(value(store.claimed(), 1, ago(store, 1)))
    assert store.ledger("AAPL", "failures", "failing_since", "retry_at", "reason") == (0, None, None, None)


def test_a_key_outside_the_plan_is_parked_alone(store: StoreSession) -> None:
    """entitlement_key: not asked again for negative_ttl, no retries, no dead letter, and the upstream is not blamed."""
    claim = store.claimed()
    assert store.store(failed(claim, "entitlement_key", blame="data")) == [Answered("rejected", "entitlement_key")]
    assert store.ledger("AAPL", "retry_at") == (store.now() + timedelta(hours=1),)
    assert store.state(claim.id) == "cancelled"
    assert store.value("SELECT parked_reason FROM livewell.data_type") is None


@pytest.mark.parametrize("reason", ["entitlement_type", "legacy_path"])
def test_an_endpoint_outside_the_plan_parks_the_type(store: StoreSession, reason: str) -> None:
    """The type says why; other types of the upstream go on."""
    store.type("profile")
    store.store(failed(store.claimed(), reason, blame="ours"))
    assert store.rows("SELECT name, parked_reason FROM livewell.data_type ORDER BY name") == [
        ("profile", None),
        ("quote", f"{reason}: {reason} seen"),
    ]


def test_the_bandwidth_wall_opens_the_breaker_and_costs_no_attempt(store: StoreSession) -> None:
    """The job goes back; nobody is called for hours."""
    store.rows("DELETE FROM livewell.limiter")
    store.upstream(breaker_failures=10)
    claim = store.claimed()
    assert store.store(failed(claim, "bandwidth_wall", blame="wall")) == [Answered("rejected", "bandwidth_wall")]
    assert store.job(claim.id, "state", "attempt") == ("ready", 0)
    breaker, until = store.rows("SELECT breaker::text, open_until FROM livewell.limiter_credential")[0]
    assert (breaker, until) == ("open", store.now() + timedelta(hours=6))


def test_a_rate_wall_sends_the_job_back_for_as_long_as_it_says(store: StoreSession) -> None:
    """Not the job's fault, not the upstream's: the attempt is given back."""
    claim = store.claimed()
    store.store(failed(claim, "rate_wall", delay_seconds=7))
    assert store.job(claim.id, "state", "attempt", "run_at") == ("delayed", 0, store.now() + timedelta(seconds=7))


# -- type versions, calls, bytes -----------------------------------------------------------------


@pytest.mark.parametrize("which", ["registry", "answer"])
def test_a_type_that_changed_under_the_job_is_not_stored_and_due_at_once(store: StoreSession, which: str) -> None:
    """The job was made for version 1.

    Nothing is stored, and the key is due now for the next one.
    """
    claim = store.claimed()
    if which == "registry":
        store.rows("UPDATE livewell.data_type SET version = 2")
    told = value(claim, 1, ago(store, 30), version=2 if which == "answer" else 1)
    assert store.store(told) == [Answered("type_changed", None)]
    assert store.price() is None
    assert store.ledger("AAPL", "due_at", "fetched_at") == (store.now(), None)
    assert store.state(claim.id) == "succeeded"


def test_many_results_have_each_their_own_end(store: StoreSession) -> None:
    """One transaction, five ends."""
    store.ask("A", "B", "C", "D", "E")
    claims = store.take(store.register(queues=[QUEUE]))
    store.keep("Z")
    answers = store.store(
        value(claims["A"], 1, ago(store, 30), "A"),
        failed(claims["B"], "not_json", "B"),
        result(claims["C"], "C", outcome="missing"),
        value(claims["D"], 4, ago(store, 30), "D"),
        value(claims["E"], 5, ago(store, 30), "E", fence=claims["E"].fence + 7),
    )
    assert [one.answer for one in answers] == ["stored", "rejected", "missing", "stored", "fenced"]
    assert store.column("SELECT key FROM livewell_data.quote ORDER BY key") == ["A", "D"]
    assert store.counts() == {"stored": 2, "not_json": 1, "missing": 1, "fenced": 1}


def test_a_refused_batch_call_comes_back_as_single_calls(store: StoreSession) -> None:
    """Nobody is blamed before each key has been asked for alone; no attempt is counted."""
    store.ask("A", "B", call_key="quote#1")
    worker = store.register(queues=[QUEUE])
    claims = store.take(worker)
    assert len({claim.call for claim in claims.values()}) == 1
    store.store(*(result(claim, key, outcome="singly") for key, claim in claims.items()))
    assert store.ledger("A", "reason", "status_version") == (None, 0)
    again = store.take(worker)
    assert len({claim.call for claim in again.values()}) == 2
    assert {claim.attempt for claim in again.values()} == {1}


def test_bytes_are_booked_once_with_the_value(store: StoreSession) -> None:
    """Contract 6a: the budget is charged the bytes that the wire measured.

    That happens in the same transaction, also when the job is no longer ours.
    """
    store.rows("DELETE FROM livewell.limiter")
    store.upstream(budget_units=1_000_000, budget_unit="bytes", budget_seconds=3600)
    claim = store.claimed()
    store.store(value(claim, 1, ago(store, 30), used=12_345))
    assert store.value("SELECT sum(units) FROM livewell.limiter_usage") == 12_345
    store.store(value(claim, 1, ago(store, 30), used=12_345))
    assert store.value("SELECT sum(units) FROM livewell.limiter_usage") == 12_345
    assert store.rows("SELECT wire_bytes, decoded_bytes FROM livewell.refresh_count WHERE outcome = 'stored'") == [
        (700, 600)
    ]
    assert store.value("SELECT units FROM livewell.limiter_estimate WHERE kind = 'livewell.refresh:quote'") == 700


def test_a_call_for_many_keys_is_counted_once(store: StoreSession) -> None:
    """By its first key, which carries the bytes; a call that brought no byte was not answered."""
    store.ask("A", "B", "C")
    claims = store.take(store.register(queues=[QUEUE]))
    store.store(
        value(claims["A"], 1, ago(store, 30), "A"),
        value(claims["B"], 1, ago(store, 30), "B", wire=0, decoded=0),
        failed(claims["C"], "connection", "C", wire=0, decoded=0),
    )
    assert store.value("SELECT sum(calls) FROM livewell.refresh_count") == 1


def test_a_value_that_the_table_refuses_stores_nothing_of_its_flush(store: StoreSession) -> None:
    """Class 23: the whole call fails, so that the storer can send them one by one."""
    store.ask("A", "B")
    claims = store.take(store.register(queues=[QUEUE]))
    with pytest.raises(psycopg.errors.CheckViolation):
        store.store(value(claims["A"], 1, ago(store, 30), "A"), value(claims["B"], -1, ago(store, 30), "B"))
    assert store.rows("SELECT * FROM livewell_data.quote") == []
    assert store.states([claims["A"].id, claims["B"].id]) == ["running", "running"]


def test_what_a_job_is_about_is_taken_from_the_job(store: StoreSession) -> None:
    """F-D9, behind the echo check.

    A result that names another key is stored under the key that was asked for.
    """
    claim = store.claimed("AAPL")
    store.store(value(claim, 1, ago(store, 30), "MSFT"))
    assert store.column("SELECT key FROM livewell_data.quote") == ["AAPL"]


def test_a_rejection_is_a_warning_that_names_the_type_and_the_reason(store: StoreSession) -> None:
    """F-D17: schema drift is seen at once, with a sample."""
    store.store(failed(store.claimed(), "missing_field", blame="data"))
    assert store.rows("SELECT place, what, sample FROM livewell.warning") == [
        ("refresh", "quote: missing_field", "missing_field seen")
    ]


def test_the_worker_role_may_store(store: StoreSession) -> None:
    """Least privilege suffices: the registry is read, only parked_reason of it is written."""
    claim = store.claimed()
    store.rows("GRANT SELECT, INSERT, UPDATE, DELETE ON livewell_data.quote TO livewell_worker")
    store.rows("SET ROLE livewell_worker")
    try:
        assert store.store(failed(claim, "entitlement_type")) == [Answered("rejected", "entitlement_type")]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            store.rows("UPDATE livewell.data_type SET ttl = '1 second'")
    finally:
        store.rows("RESET ROLE")
    assert KIND == "livewell.refresh"


# -- the last answers ----------------------------------------------------------------------------


def test_the_last_sixteen_answers_of_a_key_are_kept(store: StoreSession) -> None:
    """With what became of each; older ones give up their place."""
    for turn in range(20):
        claim = store.claimed()
        store.store(value(claim, turn + 1, ago(store, 30 - turn)))
    store.store(failed(store.claimed(), "status"))
    answers = store.rows("SELECT outcome FROM livewell.list_answers('quote', 'AAPL')")
    assert len(answers) == 16
    assert store.rows("SELECT count(*) FROM livewell.refresh_event") == [(16,)]
    assert sorted(answers) == [*[("status",)], *[("stored",)] * 15]


def test_an_answer_that_settles_nothing_takes_no_place(store: StoreSession) -> None:
    """A job that was made for another version of the type is asked again, and the history stays."""
    store.store(value(store.claimed(), 1, ago(store, 30)))
    store.rows("UPDATE livewell.data_type SET version = 2 WHERE name = 'quote'")
    store.store(value(store.claimed(version=1), 2, ago(store, 20)))
    assert store.rows("SELECT outcome FROM livewell.list_answers('quote', 'AAPL')") == [("stored",)]
