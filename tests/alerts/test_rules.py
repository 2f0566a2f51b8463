"""R23: every rule fires once on rows that the product itself made, is told exactly once, does not flap, is armed again, and fires again.

Only the clock is moved. The judge is the receiver's own log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from livewell.alerts.channel import Channel
from livewell.alerts.deliver import deliver
from livewell.db import Database
from livewell.operations.rules import evaluate
from tests.support.alerts_sql import AlertSession
from tests.support.receiver import Receiver
from tests.support.store_sql import ago, failed, value
from tests.support.variants import variant

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

Act = Callable[[AlertSession], None]


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


# -- warnings --------------------------------------------------------------------------------------------------------


def refused_answers(alerts: AlertSession) -> None:
    """Five answers of one type that cannot be stored: each is a warning."""
    for _ in range(5):
        claim = alerts.claimed("AAPL")
        alerts.store(failed(claim, "not_json", blame="data"))
        alerts.advance(400)
        alerts.rows("SELECT livewell.cancel_job(id) FROM livewell.job")


# -- types -----------------------------------------------------------------------------------------------------------


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


# -- queues ----------------------------------------------------------------------------------------------------------


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
        "SELECT livewell.add_stats(ARRAY['work'], ARRAY['task'], ARRAY['succeeded'], ARRAY[%s]::bigint[], ARRAY[1]::bigint[])",
        n,
    )


def background_job_waits(alerts: AlertSession) -> None:
    alerts.enqueue(1, lane=1)
    alerts.advance(HOUR + MINUTE)


# -- singletons ------------------------------------------------------------------------------------------------------


def hold_for_long(alerts: AlertSession) -> None:
    alerts.hold("schedule.report", lease=HOUR)
    alerts.advance(11 * MINUTE)


def release(alerts: AlertSession) -> None:
    alerts.rows("SELECT livewell.release_singleton(name, fence) FROM livewell.singleton")


# -- limiters --------------------------------------------------------------------------------------------------------


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
    alerts.enqueue(1, lane=0, queue="limited")
    worker = alerts.register(queues=["limited"])
    for _ in range(5):
        [claim] = alerts.claim_limited(worker, 1, queue="limited")
        alerts.end(claim, "retry", ended="upstream", delay_seconds=0)


def probe_succeeds(alerts: AlertSession) -> None:
    alerts.advance(HOUR)
    worker = alerts.register(queues=["limited"])
    [claim] = alerts.claim_limited(worker, 1, queue="limited")
    alerts.end(claim)


# -- schedules -------------------------------------------------------------------------------------------------------


def declare_report(alerts: AlertSession) -> None:
    """Every five minutes; nobody is there to run it."""
    alerts.rows(
        "SELECT livewell.declare_schedule('report', 'interval', NULL, NULL, '5 minutes', NULL, 'once', '1 minute', false, false)"
    )


def scheduler_lives(alerts: AlertSession) -> None:
    alerts.rows("SELECT livewell.record_pulse('schedule.loop', 'test', '1 minute', 1, 0)")


CASES = [
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
    Case("background_waiting", "P2", "work", background_job_waits, drain),
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
    root = Path(__file__).parents[2]

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
    monkeypatch.setattr("livewell.operations.rules._RULE_SECONDS", 0.5)
    background_job_waits(alerts)
    with variant(queue_dsn, "rule_breaker_open", ("RETURN QUERY", "PERFORM pg_sleep(60); RETURN QUERY")):
        found = await evaluate(database, rules=["breaker_open", "background_waiting"])
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
