"""R23: every rule fires once on rows that the product itself made, and is told exactly once.

It does not flap, is armed again, and fires again.

Only the clock is moved. The judge is the receiver's own log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from livewell.alerts.channel import Channel
from livewell.alerts.deliver import deliver
from livewell.alerts.rules import evaluate
from livewell.db import Database
from tests.integration.alerts import outbox_cases as events
from tests.support.alerts_sql import AlertSession
from tests.support.receiver import Receiver
from tests.support.store_sql import QUEUE as REFRESHES
from tests.support.store_sql import ago, failed, value
from tests.support.variants import variant

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

Act = Callable[[AlertSession], None]

SLEEPERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event = 'PgSleep' AND pid <> pg_backend_pid()
"""


def nothing(_: AlertSession) -> None:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class Case:
    """How a rule's condition comes about, what keeps it up from minute to minute, and what ends it."""

    rule: str
    level: str
    subject: str
    cause: Act
    cure: Act
    prepare: Act = nothing
    keep: Act = nothing  # before every look while the condition lasts
    lasts: int = 0  # minutes that it must be seen before it fires
    arm_seconds: float = 26 * HOUR  # after the cure, well beyond the hysteresis


# -- warnings ------------------------------------------------------------------------------------


def refused_answers(alerts: AlertSession) -> None:
    """Five answers of one type that cannot be stored: each is a warning."""
    for _ in range(5):
        claim = alerts.claimed("AAPL")
        alerts.store(failed(claim, "not_json", blame="data"))
        alerts.advance(400)
        alerts.rows("SELECT livewell.cancel_job(id) FROM livewell.job")


# -- types ---------------------------------------------------------------------------------------


def watched_and_stale(alerts: AlertSession) -> None:
    alerts.subscribe(alerts.open("ann", id="11111111-1111-4111-8111-111111111111"), "AAPL", user="ann")
    alerts.advance(DAY + MINUTE)


def still_there(alerts: AlertSession) -> None:
    alerts.rows("SELECT livewell.open_session('11111111-1111-4111-8111-111111111111', 'ann')")
    alerts.subscribe("11111111-1111-4111-8111-111111111111", "AAPL", user="ann")
    alerts.rows("SELECT livewell.heartbeat_session('11111111-1111-4111-8111-111111111111', 'ann')")


def refreshed(alerts: AlertSession) -> None:
    alerts.rows("SELECT livewell.cancel_job(id) FROM livewell.job")
    alerts.store(value(alerts.claimed("AAPL"), 1, ago(alerts, 5)))


def large_answers(alerts: AlertSession) -> None:
    """The first measurement counts as it is, later ones by a tenth."""
    for _ in range(40):
        alerts.store(value(alerts.claimed("AAPL"), 1, ago(alerts, 5), wire=2000, decoded=2000))
        alerts.advance(MINUTE)


def small_answers(alerts: AlertSession) -> None:
    for _ in range(40):
        alerts.store(value(alerts.claimed("AAPL"), 1, ago(alerts, 5), wire=700, decoded=600))
        alerts.advance(MINUTE)


# -- queues --------------------------------------------------------------------------------------


def enqueue(n: int) -> Act:
    def act(alerts: AlertSession) -> None:
        alerts.enqueue(n)

    return act


def drain(alerts: AlertSession) -> None:
    """A worker comes, does everything and counts it."""
    worker = alerts.register()
    n = 0
    while claims := alerts.claim(worker, 500):
        alerts.finish(*claims)
        n += len(claims)
    alerts.rows(
        "SELECT livewell.add_stats(ARRAY['work'], ARRAY['task'], ARRAY['succeeded'], ARRAY[%s]::bigint[], "
        "ARRAY[1]::bigint[])",
        n,
    )


def background_job_waits(alerts: AlertSession) -> None:
    alerts.enqueue(1, lane=1)
    alerts.advance(HOUR + MINUTE)


# -- singletons ----------------------------------------------------------------------------------


def hold_for_long(alerts: AlertSession) -> None:
    alerts.hold("schedule.report", lease=HOUR)
    alerts.advance(11 * MINUTE)


def release(alerts: AlertSession) -> None:
    alerts.rows("SELECT livewell.release_singleton(name, fence) FROM livewell.singleton")


# -- limiters ------------------------------------------------------------------------------------


def budget(alerts: AlertSession) -> None:
    alerts.limiter("bytes", budget_units=1000, budget_unit="bytes", budget_seconds=DAY, estimate_units=10)
    alerts.declare("limited", limiter="bytes")


def use(units: int) -> Act:
    def act(alerts: AlertSession) -> None:
        alerts.enqueue(1, lane=0, queue="limited")
        [claim] = alerts.claim_limited(alerts.register(queues=["limited"]), 1, queue="limited")
        alerts.end(claim, used=units)

    return act


def forget_use(alerts: AlertSession) -> None:
    alerts.advance(26 * HOUR)


def rate(alerts: AlertSession) -> None:
    alerts.limiter("calls", rate_calls=12, rate_seconds=60, burst=12, reserve=0, permit_seconds=1)
    alerts.declare("limited", limiter="calls")


def many_jobs(alerts: AlertSession) -> None:
    alerts.enqueue(500, lane=0, queue="limited")


def spend_the_minute(alerts: AlertSession) -> None:
    alerts.advance(5)
    worker = alerts.register(queues=["limited"])
    for claim in alerts.claim_limited(worker, 12, queue="limited"):
        alerts.end(claim)


def cancel_the_rest(alerts: AlertSession) -> None:
    alerts.rows("SELECT livewell.cancel_job(id) FROM livewell.job")


def breaker(alerts: AlertSession) -> None:
    alerts.limiter("flaky", breaker_failures=10, breaker_in_row=5)
    alerts.declare("limited", limiter="flaky", attempts=100)


def fail_calls(alerts: AlertSession) -> None:
    alerts.enqueue(6, lane=0, queue="limited")  # one job that is tried again says nothing new
    worker = alerts.register(queues=["limited"])
    for _ in range(5):
        [claim] = alerts.claim_limited(worker, 1, queue="limited")
        alerts.end(claim, "refused", ended="upstream")


def probe_succeeds(alerts: AlertSession) -> None:
    alerts.advance(HOUR)
    worker = alerts.register(queues=["limited"])
    [claim] = alerts.claim_limited(worker, 1, queue="limited")
    alerts.end(claim)


# -- freshness -----------------------------------------------------------------------------------

ANN = "11111111-1111-4111-8111-111111111111"


def values(alerts: AlertSession, *keys: str) -> None:
    """Each is refreshed now, by a worker that counts it."""
    worker = alerts.register(queues=[REFRESHES])
    alerts.rows("DELETE FROM livewell.job")
    alerts.ask(*keys)
    for key, claim in alerts.take(worker).items():
        alerts.store(value(claim, 1, ago(alerts, 1), key))
    alerts.rows(
        "SELECT livewell.add_stats(ARRAY[%s], ARRAY['livewell.refresh'], ARRAY['succeeded'], "
        "ARRAY[1]::bigint[], ARRAY[1]::bigint[])",
        REFRESHES,
    )


def refreshed_and_watched(alerts: AlertSession) -> None:
    """Thirty keys that somebody looks at, all fresh."""
    limited_upstream(alerts)
    alerts.rows("SELECT livewell.resume_upstream('api', 'a test')")
    present(alerts)
    values(alerts, *KEYS)


def limited_upstream(alerts: AlertSession) -> None:
    alerts.limiter("api", rate_calls=300, rate_seconds=60, burst=300, breaker_failures=10)


def present(alerts: AlertSession) -> None:
    """She goes on looking."""
    alerts.rows("SELECT livewell.open_session(%s, 'ann')", ANN)
    alerts.subscribe(ANN, *KEYS, user="ann")
    alerts.rows("SELECT livewell.heartbeat_session(%s, 'ann')", ANN)


def asks_for_a_day(alerts: AlertSession) -> None:
    """A Retry-After of a day, and again whenever it may speak.

    The due check finds nothing that may go.
    """
    alerts.rows("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 86400)")
    alerts.advance(61)
    present(alerts)


def still_silent(alerts: AlertSession) -> None:
    present(alerts)
    alerts.rows("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 86400)")


def waits_for_five_minutes(alerts: AlertSession) -> None:
    """Five times a minute, and one more."""
    asks_for_a_day(alerts)
    alerts.advance(6 * MINUTE)
    present(alerts)


def worker_without_key(alerts: AlertSession) -> None:
    """A worker that does not have the variable, and says so; beside it one for other queues."""
    alerts.rows("DELETE FROM livewell.worker")
    alerts.rows("SELECT livewell.declare_limiter('paid', '{}', ARRAY['PAID_KEY', 'PAID_KEY_TWO'])")
    alerts.declare("limited", limiter="paid")
    worker = alerts.register(queues=["limited"])
    alerts.rows("UPDATE livewell.worker SET lacks = ARRAY['paid PAID_KEY', 'paid PAID_KEY_TWO'] WHERE id = %s", worker)
    alerts.register(queues=["other"])


def worker_with_key(alerts: AlertSession) -> None:
    """It has one of the two: enough to call."""
    alerts.rows("DELETE FROM livewell.worker")
    worker = alerts.register(queues=["limited"])
    alerts.rows("UPDATE livewell.worker SET lacks = ARRAY['paid PAID_KEY_TWO'] WHERE id = %s", worker)


def stays_alive(alerts: AlertSession) -> None:
    alerts.rows("UPDATE livewell.worker SET expires_at = livewell.now() + interval '1 minute'")


KEYS = [f"K{n}" for n in range(30)]


# -- schedules -----------------------------------------------------------------------------------


def declare_report(alerts: AlertSession) -> None:
    """Every five minutes; nobody is there to run it."""
    alerts.rows(
        "SELECT livewell.declare_schedule('report', 'interval', NULL, NULL, '5 minutes', NULL, 'once', '1 "
        "minute', false, false)"
    )


def scheduler_lives(alerts: AlertSession) -> None:
    alerts.rows("SELECT livewell.record_pulse('schedule.loop', 'test', '1 minute', 1, 0)")


# -- exports -------------------------------------------------------------------------------------

_EXPORT = """
INSERT INTO livewell.export (id, job_id, user_id, kind, document_id, document_version, file_name, options,
    options_hash, state, reason, created_at, finished_at)
SELECT gen_random_uuid(), n, 'ann', 'resume', n::text, '1', 'cv.pdf', '{}', decode(repeat('00', 32), 'hex'), %s, %s,
    livewell.now() - interval '6 minutes', CASE WHEN %s = 'failed' THEN livewell.now() END
FROM generate_series(1, %s) AS n
"""
_RENDERER = """
INSERT INTO livewell.export_renderer (seen_at, started_at, rss_bytes, children_bytes, bytes_max, renders, children,
    spare_deaths, name, killed)
VALUES (livewell.now(), livewell.now(), 500, 300, 1000, 1, 1, 0, 'host:1', '{}')
"""


def exports(state: str, reason: str | None, n: int) -> Act:
    def act(alerts: AlertSession) -> None:
        alerts.rows(_EXPORT, state, reason, state, n)

    return act


def no_exports(alerts: AlertSession) -> None:
    alerts.rows("DELETE FROM livewell.export")


def full_renderer(alerts: AlertSession) -> None:
    alerts.rows(_RENDERER)


def says_so_still(alerts: AlertSession) -> None:
    alerts.rows("UPDATE livewell.export_renderer SET seen_at = livewell.now()")


def no_renderer(alerts: AlertSession) -> None:
    alerts.rows("DELETE FROM livewell.export_renderer")


CASES = [
    Case("exports_failing", "P1", "exports", exports("failed", "died", 5), no_exports),
    Case("exports_memory", "P2", "host:1", full_renderer, no_renderer, keep=says_so_still),
    Case("exports_waiting", "P1", "exports", exports("waiting", None, 1), no_exports),
    Case("warning_rate", "P2", "refresh: quote: not_json", refused_answers, nothing),
    Case("type_silent", "P1", "quote", watched_and_stale, refreshed, keep=still_there, lasts=10),
    Case("singleton_held", "P0", "schedule.report", hold_for_long, release),
    Case("queue_deep", "P1", "work", enqueue(1001), drain, lasts=30),
    Case("queue_stalled", "P1", "work", enqueue(1), drain, lasts=10),
    Case("budget_three_quarters", "P2", "bytes", use(751), forget_use, prepare=budget),
    Case("budget_nine_tenths", "P1", "bytes", use(901), forget_use, prepare=budget),
    Case("budget_reached", "P0", "bytes", use(950), forget_use, prepare=budget),
    Case("calls_near_limit", "P2", "calls", many_jobs, cancel_the_rest, prepare=rate, keep=spend_the_minute, lasts=14),
    Case("size_underestimated", "P2", "quote", large_answers, small_answers),
    Case("breaker_open", "P1", "flaky", fail_calls, probe_succeeds, prepare=breaker),
    Case(
        "watched_not_fresh",
        "P1",
        "api",
        asks_for_a_day,
        refreshed_and_watched,
        prepare=refreshed_and_watched,
        keep=present,
        lasts=5,
    ),
    Case(
        "key_overdue",
        "P1",
        REFRESHES,
        waits_for_five_minutes,
        refreshed_and_watched,
        prepare=refreshed_and_watched,
        keep=present,
    ),
    Case(
        "upstream_silent",
        "P1",
        "api",
        asks_for_a_day,
        refreshed_and_watched,
        prepare=refreshed_and_watched,
        keep=still_silent,
        lasts=15,
    ),
    Case("credential_missing", "P1", "paid", worker_without_key, worker_with_key, keep=stays_alive),
    Case("background_waiting", "P2", "work", background_job_waits, drain),
    Case("outbox_late", "P1", "shop", events.event_waits, events.deliver_all, prepare=events.empty_outbox, lasts=1),
    Case("sink_away", "P1", "shop", events.sink_is_gone, events.sink_is_back, prepare=events.empty_outbox),
    Case("key_parked", "P2", "shop", events.refused_and_parked, events.discarded, prepare=events.empty_outbox),
    Case("outbox_dead", "P2", "shop", events.refused, nothing, prepare=events.empty_outbox),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
async def test_a_rule_fires_once_and_again_after_it_was_armed(
    alerts: AlertSession, database: Database, receiver: Receiver, webhook: Channel, case: Case
) -> None:
    """Told once per firing, whatever happens in between."""

    async def look() -> None:
        await evaluate(database, rules=[case.rule])
        await deliver(database, [webhook])

    async def look_for(minutes: int) -> None:
        for _ in range(minutes):
            alerts.advance(MINUTE)
            case.keep(alerts)
            await look()

    case.prepare(alerts)
    await look()
    assert receiver.received == [], "it fired before there was a reason"

    for nth in (1, 2):
        case.cause(alerts)
        case.keep(alerts)
        await look()
        if case.lasts:
            await look_for(case.lasts - 2)
            assert len(receiver.received) == nth - 1, "it fired too early"
        await look_for(case.lasts + 3 if case.lasts else 2)
        assert len(receiver.received) == nth, "not told exactly once"
        case.cure(alerts)
        alerts.advance(case.arm_seconds)
        await look()
        assert alerts.alert_states() == ["cooling"]
        alerts.advance(case.arm_seconds)
        await look()
        assert alerts.alert_states() == ["armed"]

    told = [one["data"] for one in receiver.documents]
    assert [(one["rule"], one["level"], one["subject"]) for one in told] == [(case.rule, case.level, case.subject)] * 2
    assert len({one["id"] for one in receiver.documents}) == 2
    assert all(case.subject in one["summary"] for one in told)


async def test_a_schedule_that_is_late_is_told_once_and_again_after_it_was_armed(
    alerts: AlertSession, database: Database, receiver: Receiver, webhook: Channel
) -> None:
    """schedule_late asks the same function as an outside watchdog: two intervals and a minute."""

    async def look_after(minutes: float) -> None:
        alerts.advance(minutes * MINUTE)
        scheduler_lives(alerts)
        await evaluate(database, rules=["schedule_late"])
        await deliver(database, [webhook])

    declare_report(alerts)
    for nth in (1, 2):
        await look_after(10.9)
        assert len(receiver.received) == nth - 1, "it fired too early"
        for _ in range(5):
            await look_after(1)
        assert len(receiver.received) == nth, "not told exactly once"
        alerts.rows("SELECT livewell.remove_schedule('report')")
        await look_after(1)
        assert alerts.alert_states() == ["cooling"]
        await look_after(6)
        assert alerts.alert_states() == ["armed"]
        declare_report(alerts)

    told = [one["data"] for one in receiver.documents]
    assert [(one["rule"], one["level"], one["subject"]) for one in told] == [("schedule_late", "P0", "report")] * 2


async def test_every_rule_has_a_case_and_a_page(alerts: AlertSession) -> None:
    """None is forgotten."""
    rules = alerts.column("SELECT name FROM livewell.alert_rules() ORDER BY name")
    root = Path(__file__).parents[3]

    assert sorted([*(case.rule for case in CASES), "schedule_late"]) == rules
    assert sorted(page.stem for page in (root / "docs/operations/alerts").glob("*.md") if page.stem != "index") == rules
    assert alerts.column("SELECT level FROM livewell.alert_rules() WHERE name <> 'schedule_late' ORDER BY name") == [
        case.level for case in sorted(CASES, key=lambda case: case.rule)
    ]


async def test_a_healthy_system_fires_nothing(alerts: AlertSession, database: Database) -> None:
    """Work, calls and viewers as they should be, for three hours."""
    budget(alerts)
    for _ in range(36):
        alerts.enqueue(10)
        drain(alerts)
        use(1)(alerts)
        refreshed(alerts)
        found = await evaluate(database, rules=[case.rule for case in CASES])
        assert (found.fired, found.failed) == (0, ())
        alerts.advance(5 * MINUTE)


async def test_a_type_that_needs_no_refresh_is_not_silent(alerts: AlertSession, database: Database) -> None:
    """Its values live for a month; somebody watches it."""
    alerts.rows("UPDATE livewell.data_type SET ttl = '30 days'")
    refreshed(alerts)
    alerts.advance(5 * DAY)
    for _ in range(20):
        alerts.advance(MINUTE)
        still_there(alerts)
        assert (await evaluate(database, rules=["type_silent"])).fired == 0


async def test_what_a_person_decided_about_is_not_late(alerts: AlertSession, database: Database) -> None:
    """Events of a paused sink, events behind a dead letter, and replays wait for as long as they do.

    Broken once on purpose (none of them left out): this fails.
    """
    rules = ["outbox_late", "sink_away"]

    async def fired() -> int:
        """At two looks together."""
        n = 0
        for _ in range(2):
            alerts.advance(MINUTE)
            n += (await evaluate(database, rules=rules)).fired
        return n

    events.empty_outbox(alerts)
    events.refused_and_parked(alerts)
    alerts.advance(HOUR)
    assert await fired() == 0
    events.discarded(alerts)
    events.event_waits(alerts)
    alerts.rows("UPDATE livewell.event_delivery SET replay = true")
    assert await fired() == 0
    alerts.rows("UPDATE livewell.event_delivery SET replay = false")
    events.sink_is_gone(alerts)
    alerts.rows("UPDATE livewell.event_sink SET paused_at = livewell.now()")
    assert await fired() == 0
    alerts.rows("UPDATE livewell.event_sink SET paused_at = NULL")
    assert await fired() == 2


async def test_the_summary_says_why_an_event_is_late(alerts: AlertSession, database: Database) -> None:
    """Whoever is woken reads it first."""

    async def summary() -> str:
        await evaluate(database, rules=["outbox_late"])
        alerts.advance(MINUTE)
        await evaluate(database, rules=["outbox_late"])
        return str(alerts.value("SELECT summary FROM livewell.alert WHERE rule = 'outbox_late'"))

    events.empty_outbox(alerts)
    events.event_waits(alerts)
    assert await summary() == "sink shop: an event has been waiting for 7 min, and no relay is there"
    events.sink_is_gone(alerts)
    alerts.rows("DELETE FROM livewell.alert_firing; DELETE FROM livewell.alert")
    assert (await summary()).endswith("min, and the sink is away")


async def test_the_due_checks_term_is_no_run(alerts: AlertSession, database: Database) -> None:
    """It is held for as long as its process lives."""
    alerts.hold(lease=HOUR)
    alerts.advance(30 * MINUTE)
    assert (await evaluate(database, rules=["singleton_held"])).fired == 0


async def test_a_rule_whose_query_fails_is_a_warning_and_the_others_go_on(
    alerts: AlertSession, database: Database, queue_dsn: str
) -> None:
    """Its alerts stay as they are: nothing is known."""
    hold_for_long(alerts)
    assert (await evaluate(database, rules=["singleton_held"])).fired == 1
    release(alerts)
    alerts.enqueue(1, lane=1)
    alerts.advance(HOUR + MINUTE)
    with variant(queue_dsn, "rule_singleton_held", ("RETURN QUERY", "PERFORM 1 / 0; RETURN QUERY")):
        found = await evaluate(database)
    assert found.failed == ("singleton_held",)
    assert found.fired >= 1
    assert alerts.warnings("alerts.rules") == ["singleton_held: the rule could not be evaluated"]
    assert (
        alerts.value("SELECT error FROM livewell.alert_rule WHERE name = 'singleton_held'") == "22012: division by zero"
    )
    assert alerts.rows("SELECT state::text FROM livewell.alert WHERE rule = 'singleton_held'") == [("fired",)]
    await evaluate(database)
    assert alerts.value("SELECT error FROM livewell.alert_rule WHERE name = 'singleton_held'") is None


async def test_a_rule_that_takes_too_long_is_a_warning_and_the_others_go_on(
    alerts: AlertSession, database: Database, queue_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its call is cut off by our own deadline."""
    monkeypatch.setattr("livewell.alerts.rules._RULE_SECONDS", 0.5)
    background_job_waits(alerts)
    with variant(queue_dsn, "rule_breaker_open", ("RETURN QUERY", "PERFORM pg_sleep(60); RETURN QUERY")):
        found = await evaluate(database, rules=["breaker_open", "background_waiting"])
    alerts.rows(SLEEPERS)  # what was cut off sleeps on, and holds the rule's row from the next test
    assert (found.failed, found.fired) == (("breaker_open",), 1)
    assert len(alerts.warnings("alerts.rules")) == 1


async def test_a_hundred_alerts_of_a_rule_are_enough(alerts: AlertSession, database: Database) -> None:
    """The rest is counted."""
    for n in range(130):
        alerts.hold(f"schedule.n{n:03}", lease=HOUR)
    alerts.advance(11 * MINUTE)
    assert (await evaluate(database, rules=["singleton_held"])).fired == 100
    assert (await evaluate(database, rules=["singleton_held"])).fired == 0
    assert alerts.warnings("alerts.rules") == ["singleton_held: more than 100 alerts at once; the rest is not told"]


def test_a_worker_may_evaluate_every_rule(alerts: AlertSession) -> None:
    """With livewell_worker's rights alone."""
    rules = alerts.column("SELECT name FROM livewell.alert_rules()")
    alerts.rows("SET ROLE livewell_worker")
    try:
        assert {alerts.evaluate(rule)[0] for rule in rules} == {"evaluated"}
    finally:
        alerts.rows("RESET ROLE")


# -- mixtures: what must fire, and what must not -------------------------------------------------


def fired(alerts: AlertSession) -> set[tuple[str, str]]:
    """Rules and subjects that are fired now."""
    return {
        (rule, subject)
        for rule, subject in alerts.rows("SELECT rule, subject FROM livewell.alert WHERE state = 'fired'")
    }


FRESHNESS = ["watched_not_fresh", "key_overdue", "upstream_silent", "queue_stalled", "queue_deep"]


async def test_a_silence_of_a_day_is_told_by_every_rule_that_concerns_it(
    alerts: AlertSession, database: Database
) -> None:
    """B4, B5: 30 watched keys, a Retry-After of a day.

    After 23 h no alert had fired and the doctor was silent; now within 21 minutes.
    """
    refreshed_and_watched(alerts)
    asks_for_a_day(alerts)
    for _ in range(22):
        alerts.advance(MINUTE)
        still_silent(alerts)
        assert alerts.dispatch()["answer"] == "blocked"
        await evaluate(database, rules=FRESHNESS)

    assert fired(alerts) == {
        ("watched_not_fresh", "api"),
        ("key_overdue", REFRESHES),
        ("upstream_silent", "api"),
        ("queue_stalled", REFRESHES),
    }
    [summary] = alerts.column("SELECT summary FROM livewell.alert WHERE rule = 'upstream_silent'")
    assert "it asked for silence until" in summary


async def test_only_the_silent_upstream_is_named(alerts: AlertSession, database: Database) -> None:
    """Beside it another answers every minute."""
    refreshed_and_watched(alerts)
    alerts.upstream("well")
    alerts.type("rate", upstream="well")
    alerts.limiter("well", rate_calls=300, rate_seconds=60)
    alerts.declare("refresh.well", limiter="well")
    asks_for_a_day(alerts)
    for _ in range(17):
        alerts.advance(MINUTE)
        present(alerts)
        alerts.subscribe(ANN, *KEYS, user="ann", of="rate")
        alerts.rows(
            "UPDATE livewell.ledger SET fetched_at = livewell.now(), checked_at = livewell.now(), source_at = "
            "livewell.now(), due_at = livewell.now() + interval '1 minute' WHERE upstream = 'well'"
        )
        await evaluate(database, rules=FRESHNESS)
    assert {subject for _, subject in fired(alerts)} == {"api", REFRESHES}


async def test_a_small_upstream_beside_a_large_one_is_looked_at(alerts: AlertSession, database: Database) -> None:
    """One look at a key without a value, among 5,000 at fresh keys of another upstream.

    Seen failing with 500 looks drawn from all alike: one in ten such upstreams was seen.
    """
    alerts.upstream("well")
    alerts.type("rate", upstream="well")
    alerts.subscribe(alerts.open("ann"), "K0", user="ann")
    alerts.rows(
        "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) SELECT md5('s' || n)::uuid, "
        "livewell.now() + interval '1 hour', livewell.now(), 'u' || n FROM generate_series(1, 50) AS n"
    )
    alerts.rows(
        "INSERT INTO livewell.subscription (session_id, data_type, key, user_id) SELECT md5('s' || n)::uuid, "
        "'rate', 'R' || k, 'u' || n FROM generate_series(1, 50) AS n, generate_series(1, 100) AS k"
    )
    for _ in range(7):
        alerts.rows(
            "INSERT INTO livewell.ledger (data_type, key, upstream, status_at, fetched_at, checked_at, "
            "source_at, due_at) SELECT 'rate', 'R' || k, 'well', n.at, n.at, n.at, n.at, n.at + interval '1 minute'"
            " FROM livewell.now() AS n (at), generate_series(1, 100) AS k ON CONFLICT (data_type, key) DO "
            "UPDATE SET checked_at = excluded.checked_at, source_at = excluded.source_at"
        )
        alerts.rows("UPDATE livewell.viewer_session SET seen_at = livewell.now() WHERE user_id = 'ann'")
        await evaluate(database, rules=["watched_not_fresh"])
        alerts.advance(MINUTE)
    assert fired(alerts) == {("watched_not_fresh", "api")}


async def test_what_nobody_watches_raises_nothing(alerts: AlertSession, database: Database) -> None:
    """The viewers left while calls were stopped.

    Their keys stay due, for the due check cannot park them.
    """
    refreshed_and_watched(alerts)
    asks_for_a_day(alerts)
    alerts.advance(6 * MINUTE)
    for _ in range(40):
        alerts.advance(MINUTE)
        await evaluate(database, rules=FRESHNESS)
    assert alerts.value("SELECT count(*) FROM livewell.ledger WHERE due_at <= livewell.now()") == 30
    assert fired(alerts) == set()


async def test_a_dead_key_among_many_that_are_fresh_raises_nothing(alerts: AlertSession, database: Database) -> None:
    """One viewer, one delisted symbol: it fails and is backed off.

    The others are fresh all the time.
    """
    refreshed_and_watched(alerts)
    for _ in range(20):
        alerts.advance(MINUTE)
        present(alerts)
        values(alerts, *KEYS[1:])
        alerts.rows(
            "UPDATE livewell.ledger SET checked_at = livewell.now() - interval '1 day', failing_since = "
            "coalesce(failing_since, livewell.now()), failures = 5, reason = 'html', due_at = livewell.now() - "
            "interval '1 hour' WHERE key = 'K0'"
        )
        await evaluate(database, rules=FRESHNESS)
    assert fired(alerts) == set()


async def test_one_starved_key_among_many_that_are_fresh_is_overdue(alerts: AlertSession, database: Database) -> None:
    """It does not fail, and nobody comes to it.

    That is what key_overdue is for, and it names it.
    """
    refreshed_and_watched(alerts)
    for _ in range(8):
        alerts.advance(MINUTE)
        present(alerts)
        values(alerts, *KEYS[1:])
        await evaluate(database, rules=FRESHNESS)
    assert fired(alerts) == {("key_overdue", REFRESHES)}
    [summary] = alerts.column("SELECT summary FROM livewell.alert")
    assert "quote K0 is watched and has been due for" in summary


async def test_due_keys_count_for_the_depth_of_their_queue(alerts: AlertSession, database: Database) -> None:
    """B5: 1,200 watched keys wait in the ledger, and there is not one job."""
    many = [f"M{n}" for n in range(1200)]
    limited_upstream(alerts)
    present(alerts)
    for _ in range(32):
        alerts.rows("SELECT livewell.heartbeat_session(%s, 'ann')", ANN)
        for begin in range(0, 1200, 400):
            alerts.subscribe(ANN, *many[begin : begin + 400], user="ann", most=5000)
        await evaluate(database, rules=["queue_deep"])
        alerts.advance(MINUTE)
    assert alerts.value("SELECT count(*) FROM livewell.job") == 0
    assert fired(alerts) == {("queue_deep", REFRESHES)}
