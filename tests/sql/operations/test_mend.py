"""R25: what operators do by hand does what its name says, nothing else, and is written down."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from tests.support.alerts_sql import AlertSession
from tests.support.store_sql import QUEUE, failed

HOUR = 3600.0


def act(session: AlertSession, function: str, *params: Any) -> str:
    """One act of ann's."""
    places = ", ".join(["%s"] * (len(params) + 1))
    return str(session.value(f"SELECT livewell.{function}({places})", *params, "cli:ann@desk"))


def credential(session: AlertSession, column: str, limiter: str = "api") -> Any:
    return session.value(f"SELECT {column} FROM livewell.limiter_credential WHERE limiter = %s", limiter)


def open_breaker(session: AlertSession) -> None:
    """Two failures in a row, of two keys; open for ten minutes."""
    session.limiter("api", breaker_failures=2, breaker_in_row=2, open_seconds=600)
    worker = session.register(queues=[QUEUE])
    session.ask("A", "B")
    for key, claim in session.take(worker).items():
        session.store(failed(claim, "connection", key, blame="outage", delay_seconds=0))
    assert credential(session, "breaker") == "open"


def test_a_silence_of_a_day_is_ended_and_calls_go(alerts: AlertSession) -> None:
    """B4: nothing in 0.5.0 ended it (grep quiet_until: written, never cleared).

    The due check said "upstream" for a day.
    """
    alerts.rows("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 86400)")
    alerts.ask("AAPL")
    worker = alerts.register(queues=[QUEUE])
    assert alerts.take(worker) == {}

    assert act(alerts, "resume_upstream", "api") == "resumed"
    assert list(alerts.take(worker)) == ["AAPL"]
    assert act(alerts, "resume_upstream", "api") == "not_stopped"
    assert act(alerts, "resume_upstream", "nobody") == "unknown"


def test_one_upstream_is_resumed_and_the_other_stays_silent(alerts: AlertSession) -> None:
    """And a pause ends with it."""
    alerts.limiter("other")
    for name in ("api", "other"):
        alerts.rows("SELECT livewell.observe_limiter(%s, '', NULL, NULL, NULL, 86400)", name)
    alerts.rows("SELECT livewell.pause_upstream('api', true)")
    act(alerts, "resume_upstream", "api")

    for column in ("quiet_until", "quiet_since", "quiet_asked_seconds"):
        assert credential(alerts, column) is None
        assert credential(alerts, column, "other") is not None
    assert alerts.value("SELECT paused_at FROM livewell.upstream WHERE name = 'api'") is None


def test_a_probe_goes_now_and_its_end_decides(alerts: AlertSession) -> None:
    """One call and no more; a failure opens it again, for longer."""
    open_breaker(alerts)
    alerts.ask("C", "D")
    worker = alerts.register(queues=[QUEUE])
    assert alerts.take(worker) == {}
    assert act(alerts, "probe_breaker", "api", None) == "probing"
    taken = alerts.take(worker)
    assert len(taken) == 1
    [(key, claim)] = taken.items()
    alerts.store(failed(claim, "connection", key, blame="outage", delay_seconds=0))
    assert credential(alerts, "breaker") == "open"
    assert credential(alerts, "open_until - livewell.now() > interval '10 minutes'")


def test_a_probe_does_not_break_a_silence(alerts: AlertSession) -> None:
    """It is told how the silence ends; and what is closed needs no probe."""
    assert act(alerts, "probe_breaker", "api", None) == "closed"
    open_breaker(alerts)
    alerts.rows("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 900)")
    assert act(alerts, "probe_breaker", "api", None) == "silent"
    assert act(alerts, "probe_breaker", "api", "NO_SUCH") == "unknown"


def test_a_breaker_closed_by_hand_lets_all_calls_go_and_forgets(alerts: AlertSession) -> None:
    """A failure from before says nothing; two new ones open it again."""
    open_breaker(alerts)
    alerts.promote()
    assert act(alerts, "close_breaker", "api", None) == "closed"
    assert (credential(alerts, "breaker"), credential(alerts, "opened"), credential(alerts, "failures_in_row")) == (
        "closed",
        0,
        0,
    )
    assert alerts.value("SELECT count(*) FROM livewell.limiter_calls") == 0
    alerts.ask("C", "D")
    assert {"C", "D"} <= set(alerts.take(alerts.register(queues=[QUEUE])))
    assert act(alerts, "close_breaker", "api", None) == "was_closed"


@pytest.mark.parametrize("function", ["resume_upstream", "probe_breaker", "close_breaker"])
def test_an_act_waits_for_the_limiters_lock(alerts: AlertSession, queue_dsn: str, function: str) -> None:
    """Proven by taking the lock out of all three.

    Each was done while somebody who booked calls still held it.
    """
    open_breaker(alerts)
    params = ("api", "ann") if function == "resume_upstream" else ("api", None, "ann")
    done = threading.Event()
    with psycopg.connect(queue_dsn) as booking, psycopg.connect(queue_dsn, autocommit=True) as acting:
        booking.execute("SELECT FROM livewell.limiter WHERE name = 'api' FOR NO KEY UPDATE")

        def run() -> None:
            acting.execute(f"SELECT livewell.{function}({', '.join(['%s'] * len(params))})", params)
            done.set()

        thread = threading.Thread(target=run)
        thread.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        for _ in range(500):
            if alerts.value(waits, acting.info.backend_pid):
                break
            done.wait(0.01)
        assert not done.is_set()
        booking.rollback()
        thread.join(30)
        assert done.is_set()


def test_a_singleton_is_taken_from_a_dead_holder_only(alerts: AlertSession) -> None:
    """Whoever had it can write nothing under it any more.

    A living holder keeps it, unless forced.
    """
    alerts.rows("SELECT livewell.acquire_singleton('schedule.report', 'host:1', NULL, interval '1 hour')")
    worker = alerts.register(name="host:1")
    assert act(alerts, "take_singleton", "schedule.report", False) == "alive"

    alerts.rows("UPDATE livewell.worker SET expires_at = livewell.now() WHERE id = %s", worker)
    fence = alerts.value("SELECT fence FROM livewell.singleton WHERE name = 'schedule.report'")
    assert act(alerts, "take_singleton", "schedule.report", False) == "taken"
    assert alerts.value("SELECT livewell.release_singleton('schedule.report', %s)", fence) is False
    assert act(alerts, "take_singleton", "schedule.report", False) == "free"
    [(answer, new)] = alerts.rows(
        "SELECT answer, fence FROM livewell.acquire_singleton('schedule.report', 'host:2', NULL, interval '1 hour')"
    )
    assert (answer, new > fence) == ("held", True)
    assert act(alerts, "take_singleton", "nothing", False) == "unknown"


def test_a_living_holder_loses_it_by_force(alerts: AlertSession) -> None:
    """And the line says that it was forced."""
    alerts.rows("SELECT livewell.acquire_singleton('schedule.report', 'host:1', NULL, interval '1 hour')")
    alerts.register(name="host:1")
    assert act(alerts, "take_singleton", "schedule.report", True) == "taken"
    [line] = alerts.rows("SELECT actor, action, subject, arguments, answer FROM livewell.list_audit(NULL, 1)")
    assert line == ("cli:ann@desk", "singletons.take", "schedule.report", {"force": True, "holder": "host:1"}, "taken")


def test_every_act_is_written_down_and_an_act_that_fails_is_not_done(alerts: AlertSession) -> None:
    """Both or neither; who may act can neither change nor delete a line."""
    alerts.rows("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 86400)")
    alerts.rows("SET ROLE livewell_operate")
    try:
        assert act(alerts, "resume_upstream", "api") == "resumed"
        for statement in (
            "DELETE FROM livewell.audit",
            "UPDATE livewell.audit SET actor = 'bob'",
            "TRUNCATE livewell.audit",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                alerts.rows(statement)
    finally:
        alerts.rows("RESET ROLE")
    [(actor, login, action, answer)] = alerts.rows(
        "SELECT actor, login, action, answer FROM livewell.list_audit(NULL, 1)"
    )
    assert (actor, action, answer) == ("cli:ann@desk", "upstreams.resume", "resumed")
    assert login == alerts.value("SELECT session_user")


def test_the_audit_holds_no_secret_and_is_bounded(alerts: AlertSession) -> None:
    """Old lines go in pages, never younger than ninety days."""
    alerts.rows("DELETE FROM livewell.audit")
    alerts.rows(
        "SELECT livewell.record_act('key:1', 'x', 'password=hunter2', jsonb_build_object('token', 'hunter2'), "
        "repeat('x', 5000))"
    )
    assert "hunter2" not in str(alerts.rows("SELECT * FROM livewell.audit"))
    assert alerts.value("SELECT livewell.prune_audit(1, 100)") == 0
    alerts.advance(91 * 86400)
    assert alerts.value("SELECT livewell.prune_audit(1, 100)") == 1


@pytest.mark.parametrize("role", ["livewell_operate", "livewell_worker"])
def test_who_mends_needs_no_more_rights(alerts: AlertSession, role: str) -> None:
    """A missing grant shows only when run as that role."""
    open_breaker(alerts)
    alerts.rows("SELECT livewell.acquire_singleton('schedule.report', 'host:1', NULL, interval '1 hour')")
    alerts.rows(f"SET ROLE {role}")
    try:
        done = [
            act(alerts, "resume_upstream", "api"),
            act(alerts, "probe_breaker", "api", None),
            act(alerts, "close_breaker", "api", None),
            act(alerts, "take_singleton", "schedule.report", False),
        ]
    finally:
        alerts.rows("RESET ROLE")
    assert done == ["not_stopped", "probing", "closed", "taken"]
