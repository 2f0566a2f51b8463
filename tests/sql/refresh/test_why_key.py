"""X8: for each reason a key may have to be fresh or stale, the reason is caused and `why` says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from livewell.refresh.why import _WHY, _WORDS, WhyKey, _instant
from tests.support.store_sql import KIND, QUEUE, StoreSession, ago, failed, result, value
from tests.support.variants import source, variant


@pytest.fixture
def store(queue_dsn: str) -> Iterator[StoreSession]:
    """One type with its table, and a worker for its queue; the clock stands still."""
    with StoreSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        session.freeze()
        register(session)
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()


def register(session: StoreSession) -> int:
    """A worker that has the task, for a day."""
    worker = session.register(queues=[QUEUE], name="host:1")
    session.rows(
        "UPDATE livewell.worker SET kinds = ARRAY['livewell.refresh'], expires_at = expires_at + interval '1 "
        "day' WHERE id = %s",
        worker,
    )
    return worker


def why(session: StoreSession, key: str = "AAPL", *, of: str = "quote") -> WhyKey:
    """Ask; words of both lengths must be sentences without holes."""
    answer = WhyKey(of, key, *session.rows(_WHY, of, key)[0])
    assert "None" not in answer.operator_words
    assert "an unknown time" not in answer.operator_words
    assert answer.operator_words.startswith(answer.words)
    return answer


def watch(session: StoreSession, *keys: str, of: str = "quote") -> str:
    """Somebody who looks at these keys."""
    viewer = session.open()
    session.subscribe(viewer, *keys, of=of)
    return viewer


def stored(session: StoreSession, key: str = "AAPL", *, source_ago: float = 1) -> None:
    """A value that was stored just now, by a refresh."""
    claim = session.claimed(key)
    assert session.store(value(claim, 231.4, ago(session, source_ago), key))[0].answer == "stored"


def stale(session: StoreSession, key: str = "AAPL") -> str:
    """A watched key whose value was stored a while ago."""
    viewer = watch(session, key)
    stored(session, key)
    session.advance(61)
    return viewer


def test_fresh_says_when_the_source_spoke_when_it_was_checked_and_until_when(store: StoreSession) -> None:
    """With the three times that make it so."""
    watch(store, "AAPL")
    stored(store)
    answer = why(store)

    assert (answer.reason, answer.verdict, answer.viewers) == ("fresh", "fresh", 1)
    assert answer.source_at == ago(store, 1)
    assert answer.checked_at == store.now()
    assert answer.fresh_until == store.now() + timedelta(minutes=1)


def test_a_source_without_a_time_is_unverifiable(store: StoreSession) -> None:
    """Checked in time, and nobody can tell how old it is."""
    store.rows("UPDATE livewell.data_type SET has_source_time = false")
    claim = store.claimed()
    store.store(value(claim, 231.4, None))

    assert why(store).reason == "unverifiable"


def test_a_source_that_is_late_is_lagging(store: StoreSession) -> None:
    """It was asked just now, and says what it said an hour ago."""
    store.rows("UPDATE livewell.data_type SET max_source_age = '15 minutes'")
    stored(store, source_ago=3600)

    assert why(store).reason == "lagging"


def test_what_the_upstream_does_not_know_is_missing(store: StoreSession) -> None:
    """Until its negative time to live is over."""
    store.store(result(store.claimed(), outcome="missing"))
    answer = why(store)

    assert (answer.reason, answer.fresh_until) == ("missing", store.now() + timedelta(hours=1))


def test_unknown_types_and_keys_that_do_not_fit(store: StoreSession) -> None:
    """And a key that nobody ever asked for."""
    assert why(store, of="nothing").reason == "unknown_type"
    assert (why(store, "a b").reason, why(store, "a b").name) == ("bad_key", "[A-Z0-9]{1,20}")
    assert why(store, "NEVER").reason == "never_asked"


def test_what_nobody_watches_is_parked(store: StoreSession) -> None:
    """Stale, and nobody asks; also before the due check has parked it."""
    viewer = stale(store)
    store.close_session(viewer)
    assert why(store).reason == "not_watched"

    assert store.dispatch()["parked"] == 1
    assert why(store).reason == "not_watched"


def test_who_waits_by_reading_through_counts_as_somebody(store: StoreSession) -> None:
    """For a minute: its job is in the lane of people.

    And when that is gone, the due check comes to it.
    """
    stored(store)
    store.advance(61)
    store.rows("SELECT livewell.read_through('quote', 'AAPL')")
    assert (why(store).reason, why(store).lane) == ("next", 0)
    store.rows("DELETE FROM livewell.job")
    assert (why(store).reason, why(store).lane) == ("later", 0)
    store.advance(61)
    assert why(store).reason == "not_watched"


def test_a_key_of_the_universe_waits_for_the_next_walk(store: StoreSession) -> None:
    """Nobody watches it, and the schedule has it."""
    stored(store)
    store.advance(61)
    due = store.now() + timedelta(hours=3)
    store.rows("UPDATE livewell.data_type SET strategy = 'scheduled', cron = '0 2 * * *', zone = 'UTC'")
    store.rows("SELECT livewell.sync_walks()")
    store.rows("UPDATE livewell.schedule SET due_at = %s WHERE name = 'walk.quote'", due)
    store.rows("SELECT livewell.add_universe('quote', ARRAY['AAPL'])")

    assert (why(store).reason, why(store).since) == ("scheduled", due)


def test_paused_types_and_upstreams_say_since_when(store: StoreSession) -> None:
    """The type's own pause first."""
    stale(store)
    store.rows("SELECT livewell.pause_upstream('api', true)")
    answer = why(store)
    assert (answer.reason, answer.name, answer.since) == ("paused_upstream", "api", store.now())

    store.rows("SELECT livewell.pause_type('quote', true)")
    answer = why(store)
    assert (answer.reason, answer.name, answer.since) == ("paused_type", "quote", store.now())


def test_what_the_plan_does_not_include_is_parked(store: StoreSession) -> None:
    """A key alone, with its next try; then the whole type."""
    stale(store)
    store.store(failed(store.claimed(), "entitlement_key", blame="data"))
    answer = why(store)
    assert (answer.reason, answer.wait_seconds) == ("parked_key", 3600)
    assert "entitlement_key seen" in answer.operator_words
    assert "seen" not in answer.words

    store.store(failed(store.claimed("MSFT"), "entitlement_type", "MSFT", blame="data"))
    watch(store, "MSFT")
    assert why(store, "MSFT").reason == "parked_type"


def test_failing_says_since_when_why_and_when_next(store: StoreSession) -> None:
    """While its job has attempts left, and backed off afterwards."""
    stale(store)
    store.store(failed(store.claimed(), "schema"))
    since = store.now()
    answer = why(store)
    assert (answer.reason, answer.failure, answer.since) == ("failing", "schema", since)
    assert 4 <= (answer.wait_seconds or 0) <= 6
    assert answer.retry_at == since + timedelta(seconds=answer.wait_seconds or 0)

    worker = register(store)
    for _ in range(3):
        store.advance(400)
        store.promote()
        store.store(failed(store.take(worker)["AAPL"], "schema"))
    answer = why(store)
    assert (answer.reason, answer.since, answer.failures, answer.wait_seconds) == ("failing", since, 1, 60)
    assert (answer.job_id, answer.verdict) == (None, "failing")


def test_running_next_and_behind_are_told_of_its_job(store: StoreSession) -> None:
    """In the words of why_job, with its number and lane."""
    stale(store)
    store.ask("FIRST")
    store.advance(1)
    store.ask("AAPL")
    answer = why(store)
    assert (answer.reason, answer.n, answer.lane) == ("behind", 1, 0)
    assert answer.job_id == store.value("SELECT id FROM livewell.job WHERE unique_key = 'quote:AAPL'")

    worker = register(store)
    assert list(store.take(worker, 1)) == ["FIRST"]
    assert why(store).reason == "next"
    store.take(worker, 1)
    assert (why(store).reason, why(store).name) == ("running", "host:1")


def test_a_job_that_was_put_off_is_delayed(store: StoreSession) -> None:
    """Without a failure of its own."""
    stale(store)
    claim = store.claimed()
    store.settle(claim, "released", delay_seconds=30, queue=QUEUE, kind=KIND, credential=claim.credential, ended="ours")

    assert (why(store).reason, why(store).wait_seconds) == ("delayed", 30)


def test_no_worker_for_its_queue_with_and_without_a_job(store: StoreSession) -> None:
    """And none that has the task."""
    stale(store)
    store.rows("DELETE FROM livewell.worker")
    assert (why(store).reason, why(store).name) == ("no_worker", QUEUE)
    store.ask("AAPL")
    assert (why(store).reason, why(store).name) == ("no_worker", QUEUE)
    store.register(queues=[QUEUE])
    assert (why(store).reason, why(store).name) == ("no_task", KIND)


def test_workers_that_lack_the_credential(store: StoreSession) -> None:
    """They work its queue and have the task, and claim nothing of it."""
    stale(store)
    store.limiter("api", credentials=["KEY"])
    store.ask("AAPL")
    store.rows("SELECT livewell.report_lacks(id, ARRAY['api KEY']) FROM livewell.worker")
    answer = why(store)

    assert (answer.reason, answer.name) == ("no_credential", "api")
    store.rows("SELECT livewell.report_lacks(id, '{}') FROM livewell.worker")
    assert why(store).reason == "next"


def test_a_paused_queue_with_and_without_a_job(store: StoreSession) -> None:
    """Since when."""
    stale(store)
    store.pause(queue=QUEUE)
    assert (why(store).reason, why(store).since) == ("paused_queue", store.now())
    store.ask("AAPL")
    assert (why(store).reason, why(store).since) == ("paused_queue", store.now())


def limited(store: StoreSession, **limits: Any) -> None:
    """Another limiter, in the place of the one without limits."""
    store.limiter("api", **limits)


def spend(store: StoreSession, *keys: str) -> list[Any]:
    """Calls that are made."""
    worker = register(store)
    store.ask(*keys)
    return list(store.take(worker).values())


def test_the_rate_is_used_up_with_and_without_a_job(store: StoreSession) -> None:
    """When the next call may go."""
    stale(store)
    limited(store, rate_calls=2, rate_seconds=60, burst=2, permit_seconds=1)
    spend(store, "A", "B")
    answer = why(store)
    assert (answer.reason, answer.name, answer.job_id) == ("rate", "api", None)
    assert answer.wait_seconds == 60

    store.ask("AAPL")
    answer = why(store)
    assert (answer.reason, answer.name, answer.wait_seconds) == ("rate", "api", 60)


def test_the_budget_is_used_up_with_and_without_a_job(store: StoreSession) -> None:
    """When there is room again."""
    stale(store)
    limited(store, budget_units=1000, budget_unit="bytes", budget_seconds=86_400, budget_stop=0.95)
    [claim] = spend(store, "A")
    store.store(value(claim, 1, ago(store, 1), "A", used=960))
    answer = why(store)
    assert (answer.reason, answer.name, answer.job_id) == ("budget", "api", None)
    assert (answer.wait_seconds or 0) > 80_000

    store.ask("AAPL", units=700)
    assert why(store).reason == "budget"


def test_an_open_breaker_with_and_without_a_job_and_its_probe(store: StoreSession) -> None:
    """For how long, and that one call is trying."""
    stale(store)
    limited(store, breaker_failures=2, breaker_in_row=2, open_seconds=60)
    for claim, key in zip(spend(store, "A", "B"), "AB", strict=True):
        store.store(failed(claim, "connection", key, blame="outage"))
    answer = why(store)
    assert (answer.reason, answer.job_id, answer.wait_seconds) == ("breaker", None, 60)
    store.ask("AAPL")
    answer = why(store)
    assert (answer.reason, answer.wait_seconds) == ("breaker", 60)

    store.advance(61)
    store.ask("C")
    store.rows("UPDATE livewell.job SET rank = 0 WHERE unique_key = 'quote:C'")
    assert list(store.take(register(store), 1)) == ["C"]
    assert why(store).reason == "probe"


def test_an_open_breaker_stays_the_answer_while_its_jobs_wait(store: StoreSession) -> None:
    """B7: after 15 s the answer was "stalled" with the breaker still open.

    And it says what failed, until when and how often.
    """
    stale(store)
    limited(store, breaker_failures=2, breaker_in_row=2, open_seconds=60)
    for claim, key in zip(spend(store, "A", "B"), "AB", strict=True):
        store.store(failed(claim, "connection", key, blame="outage"))
    store.ask("WAITS")
    store.advance(20)
    answer = why(store)

    assert (answer.reason, answer.wait_seconds, answer.name) == ("breaker", 40, "api")
    assert f"until {_instant(store.now() + timedelta(seconds=40))}" in answer.words
    assert (answer.calls, answer.calls_failed) == (2, 2)
    assert (answer.cause, answer.opened_at) == ("connection", store.now() - timedelta(seconds=20))
    assert (
        f"since {_instant(answer.opened_at)}: connection; 2 of 2 calls failed in ten minutes" in answer.operator_words
    )
    assert "connection" not in answer.words


def test_a_key_that_fails_is_called_failing_whatever_else_it_waits_for(store: StoreSession) -> None:
    """The verdict of get and watch, not "stale"; with what failed, when and how often."""
    stale(store)
    limited(store, breaker_failures=1, breaker_in_row=1, open_seconds=600)
    since = store.now()
    store.store(failed(store.claimed(), "html", blame="outage", delay_seconds=0))
    store.rows("SELECT livewell.cancel_job(id) FROM livewell.job")
    answer = why(store)

    assert (answer.reason, answer.verdict, answer.failure, answer.tries) == ("breaker", "failing", "html", 1)
    assert answer.words.startswith(f"it is failing since {_instant(since)} (html, once), and calls are stopped")
    assert "html seen" in answer.operator_words
    assert "html seen" not in answer.words


def test_failing_says_how_often_and_when_last(store: StoreSession) -> None:
    """Every attempt counts, not only those that used up a job; a good answer ends the count."""
    stale(store)
    store.store(failed(store.claimed(), "status"))
    worker = register(store)
    for _ in range(2):
        store.advance(100)
        store.promote()
        store.store(failed(store.take(worker)["AAPL"], "status"))
    answer = why(store)
    assert (answer.reason, answer.tries, answer.tried_at) == ("failing", 3, store.now())
    assert f"status, 3 times, last at {_instant(store.now())}" in answer.words

    store.advance(400)
    store.promote()
    store.store(value(store.take(worker)["AAPL"], 1, ago(store, 1)))
    assert (why(store).reason, why(store).tries) == ("fresh", 0)


def test_answers_that_are_older_are_told_as_such(store: StoreSession) -> None:
    """B8: it said only "it is stale". Since when, how often, and what the source says instead."""
    stale(store)
    since, says = store.now(), ago(store, 600)
    for _ in range(2):
        assert store.store(value(store.claimed(), 230.0, says))[0].answer == "older"
        store.advance(1)
    answer = why(store)

    assert (answer.reason, answer.tries, answer.older_since, answer.older_source_at) == ("later", 2, since, says)
    assert f"since {_instant(since)} the upstream answers with older data than what is stored, twice" in answer.words
    assert f"it says {_instant(says)}" in answer.words
    sample = store.value("SELECT sample FROM livewell.warning WHERE what = 'quote: older'")
    assert "older than what is stored" in sample
    assert "AAPL" in sample


def test_an_upstream_that_asked_for_silence(store: StoreSession) -> None:
    """For as long as it said."""
    stale(store)
    store.rows("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 90)")
    assert (why(store).reason, why(store).wait_seconds) == ("upstream", 90)


def test_as_many_run_as_may(store: StoreSession) -> None:
    """Of the limiter, of the queue, and of the key."""
    stale(store)
    limited(store, concurrency=1)
    spend(store, "A")
    store.ask("AAPL")
    assert (why(store).reason, why(store).of_limit) == ("concurrency", 1)

    limited(store, concurrency=None, per_key=1)
    store.rows("UPDATE livewell.job SET group_key = 'AAPL' WHERE unique_key = 'quote:A'")
    assert (why(store).reason, why(store).of_limit) == ("key_limit", 1)

    limited(store, per_key=None)
    store.declare(QUEUE, attempts=4, limiter="api", concurrency=1)
    assert (why(store).reason, why(store).of_limit) == ("queue_limit", 1)
    store.declare(QUEUE, attempts=4, limiter="api", group_limit=1)
    assert (why(store).reason, why(store).of_limit) == ("held_group", 1)


def test_a_job_that_was_lost_with_a_worker(store: StoreSession) -> None:
    """It waits for an empty one."""
    stale(store)
    store.ask("AAPL")
    store.rows("UPDATE livewell.job SET lost = 1")
    assert (why(store).reason, why(store).n) == ("suspect", 1)


def test_due_and_later_are_told_without_a_job(store: StoreSession) -> None:
    """Its turn among those that are due; or not before a time that an older answer has set."""
    stale(store)
    watch(store, "MSFT")
    answer = why(store)
    assert (answer.reason, answer.n, answer.name) == ("due", 2, "api")

    claim = store.claimed()
    assert store.store(value(claim, 230.0, ago(store, 600)))[0].answer == "older"
    answer = why(store)
    assert (answer.reason, answer.since) == ("later", store.ledger("AAPL", "due_at")[0])


def test_a_queue_that_does_not_move_is_stalled(store: StoreSession) -> None:
    """A worker is there, and viewers' jobs have been ready for 15 seconds."""
    stale(store)
    store.ask("A")
    store.advance(16)
    assert (why(store).reason, why(store).name) == ("stalled", QUEUE)


def test_enough_waits_already(store: StoreSession) -> None:
    """The due check queues for two seconds and no more: so many are before it."""
    limited(store, rate_calls=60, rate_seconds=60, burst=1)
    stale(store)
    store.ask(*(f"K{n}" for n in range(5)))
    answer = why(store)
    assert (answer.reason, answer.n, answer.job_id) == ("behind", 5, None)


def test_a_scheduled_type_waits_for_what_lane_0_leaves(store: StoreSession) -> None:
    """Watched or not, it is background work: the reserve is not for it."""
    stale(store)
    limited(store, rate_calls=10, rate_seconds=60, burst=10, reserve=0.5)
    store.rows("UPDATE livewell.data_type SET strategy = 'scheduled', cron = '0 2 * * *', zone = 'UTC'")
    spend(store, *(f"K{n}" for n in range(5)))
    answer = why(store)
    assert (answer.reason, answer.lane) == ("rate", 1)


def test_a_restart_of_the_server_is_waited_for(store: StoreSession, queue_dsn: str) -> None:
    """G5: the worker was there before the server began, and has not renewed since.

    One lease at most.
    """
    limited(store, rate_calls=60, rate_seconds=60, burst=10)
    stale(store)
    store.ask("AAPL")
    began = ("pg_catalog.pg_postmaster_start_time()", "livewell.now() - interval '1 s'")
    store.rows("UPDATE livewell.worker SET renewed_at = livewell.now() - interval '2 s'")
    assert why(store).reason != "restart"
    with variant(queue_dsn, "server_started", began):
        answer = why(store)
    assert (answer.reason, answer.name) == ("restart", "api")
    assert "the database was restarted" in answer.words


def test_every_reason_of_the_functions_has_words_and_a_test() -> None:
    """Reasons that are written in the SQL, and what Python can say."""
    text = "".join(source(name).split("AS $$")[1] for name in ("why_key", "why_refresh"))
    said = set(re.findall(r"(?:reason :=|THEN|ELSE) '(\w+)'", text)) - {"waiting", "missing"}
    tests = Path(__file__).read_text()

    assert {"fresh", "missing", "lagging", "unverifiable"} | said >= {"due", "later", "stalled", "parked_key"}
    assert said <= set(_WORDS)
    # A second job with the same key does not exist for refreshes: their policy is raise. The words
    # are there for whoever enqueues by hand.
    assert [reason for reason in _WORDS if f'"{reason}"' not in tests and reason != "held_key"] == []
