"""R25: every finding, provoked for real.

The doctor names the fault and the command that mends it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from livewell import Settings
from livewell.alerts.channel import Channel
from livewell.alerts.deliver import deliver
from livewell.alerts.rules import evaluate
from livewell.db import Database
from livewell.finding import Patient
from livewell.operations.doctor import Finding, examine
from livewell.testing.pooler import PgBouncer, find_pgbouncer
from livewell.testing.processes import eventually_async
from tests.integration.operations.conftest import Examine
from tests.support.queue_sql import LimitedClaim
from tests.support.receiver import Receiver, always
from tests.support.refresh_sql import RefreshSession
from tests.support.standby import can_make_standby, standby_of
from tests.support.variants import variant

LIVING = 3600.0  # seconds of lease: alive through all that the tests move the clock


def working(session: RefreshSession, *queues: str, kinds: str = "{task}", version: str | None = None) -> int:
    """A worker that lives, of the release of the schema unless told otherwise."""
    release = version or session.value("SELECT version FROM livewell.release")
    query = "SELECT livewell.register_worker('mia', %s, %s, %s, 4, %s)"
    return int(session.value(query, release, list(queues or ("work",)), kinds, LIVING))


@asynccontextmanager
async def opened(dsn: str, settings: Settings) -> AsyncIterator[Database]:
    """As a worker has it."""
    database = Database(dsn, settings)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


# ── the database ──


async def test_a_database_that_does_not_answer_is_the_only_finding(livewell_settings: Settings) -> None:
    """And nothing hangs."""
    [finding] = await examine("postgresql://127.0.0.1:9/nowhere", livewell_settings)
    assert finding.word == "database_unreachable"
    assert "DATABASE_URL" in finding.command


@pytest.mark.skipif(not can_make_standby(), reason="the installed Postgres has no pg_basebackup")
async def test_a_replica_is_named(livewell_server: str, livewell_dsn: str, livewell_settings: Settings) -> None:
    """R28: nothing else is asked of it."""
    with standby_of(livewell_server) as replica:
        name = (
            livewell_dsn.rpartition("/")[2]
            if "://" in livewell_dsn
            else psycopg.conninfo.conninfo_to_dict(livewell_dsn)["dbname"]
        )
        dsn = psycopg.conninfo.make_conninfo(replica, dbname=str(name).partition("?")[0])
        [finding] = await examine(dsn, livewell_settings)
    assert (finding.word, "PRIMARY" in finding.command) == ("not_primary", True)


async def test_a_worker_without_a_credential_is_named_alone(sick: RefreshSession, doctor: Examine) -> None:
    """It says which variable of which upstream; the worker that has it is not named.

    It is gone when the worker has it too.
    """
    lacking = working(sick, "refresh.fmp")
    working(sick, "refresh.fmp")
    sick.value("SELECT livewell.report_lacks(%s, '{fmp FMP_KEY}')", lacking)
    found = (await doctor())["worker_without_credential"]
    assert f"number {lacking}" in found.seen
    assert "FMP_KEY" in found.command
    sick.value("SELECT livewell.report_lacks(%s, '{}')", lacking)
    assert "worker_without_credential" not in await doctor()


async def test_somebody_who_hammers_at_the_gate_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """Refused in three minutes and more.

    A mistyped key, or a browser that connects ahead of need, is ordinary.
    """
    for _ in range(3):
        sick.rows("SELECT livewell.warn('gate', 'slow_body', '4821 in a minute, 4790 of them from one address')")
        sick.rows("SELECT livewell.warn('gate', 'unknown_caller', '2 in a minute, 2 of them from one address')")
    found = (await doctor())["hammered"]
    assert found.subject == "slow_body"
    assert "4821 in a minute" in found.seen
    sick.advance(3600)
    assert "hammered" not in await doctor()


async def test_a_clock_that_is_off_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """An hour ahead of this machine."""
    sick.advance(3600)
    found = (await doctor())["clock_skew"]
    assert "1 h apart" in found.seen
    assert "set-ntp" in found.command


@pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
async def test_a_pooler_on_the_listen_address_is_named(livewell_dsn: str, livewell_settings: Settings) -> None:
    """LISTEN behind it hears nothing."""
    with PgBouncer(livewell_dsn) as pooler:
        settings = livewell_settings.model_copy(update={"listen_url": SecretStr(pooler.dsn)})
        found = {finding.word: finding for finding in await examine(livewell_dsn, settings)}
    assert set(found) == {"listen_deaf", "schedule_late"}  # no worker is there, so nothing runs by the clock
    assert "LIVEWELL_LISTEN_URL" in found["listen_deaf"].command


@pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
async def test_a_login_behind_a_pooler_with_the_wrong_settings_is_named_and_the_told_command_mends_it(
    livewell_dsn: str, livewell_settings: Settings
) -> None:
    """A direct session sets what it needs; behind a transaction pooler only the login can (Q14).

    Seen failing on 0.5.0: the doctor had no finding session_setting.
    """
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{admin.info.dbname}" SET jit = on'.encode())
    direct = {finding.word for finding in await examine(livewell_dsn, livewell_settings)}
    with PgBouncer(livewell_dsn) as pooler:
        settings = livewell_settings.model_copy(update={"listen_url": SecretStr(livewell_dsn)})
        found = {finding.word: finding for finding in await examine(pooler.dsn, settings)}
    assert "session_setting" not in direct
    assert found["session_setting"].subject == "jit"
    assert "SET jit = 'off'" in found["session_setting"].command
    told = found["session_setting"].command.partition('psql -c "')[2].partition('", then')[0].replace('\\"', '"')
    with psycopg.connect(livewell_dsn, autocommit=True) as admin:
        admin.execute(told.replace(" SET ", f' IN DATABASE "{admin.info.dbname}" SET ').encode())
    with PgBouncer(livewell_dsn) as pooler:
        mended = {finding.word for finding in await examine(pooler.dsn, settings)}
    assert "session_setting" not in mended


async def test_a_schema_that_is_behind_is_named_and_nothing_else_is_asked(
    sick: RefreshSession, doctor: Examine
) -> None:
    """What follows would ask functions that are not there."""
    sick.rows("DROP FUNCTION livewell.system_state")
    sick.rows("DELETE FROM livewell.function_source WHERE name = 'system_state'")
    found = await doctor()
    assert found["schema"].command == "livewell migrate"
    assert set(found) <= {"schema", "schema_drift"}


async def test_a_function_changed_by_hand_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """The virtual clock is one."""
    found = (await doctor())["schema_drift"]
    assert "livewell.now" in found.seen


async def test_a_role_without_rights_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """A restore that forgot the grants looks like this."""
    sick.rows("REVOKE USAGE ON SCHEMA livewell FROM livewell_hub")
    found = (await doctor())["role_missing"]
    assert "livewell_hub" in found.seen
    assert found.command == "livewell migrate"


async def test_a_transaction_left_open_is_named_with_the_command_that_ends_it(
    sick: RefreshSession, livewell_dsn: str, doctor: Examine
) -> None:
    """By its process id; ended, the finding is gone."""
    with psycopg.connect(livewell_dsn, application_name="a forgotten shell") as forgetful:
        forgetful.execute("SELECT 1")
        sick.advance(400)
        found = (await doctor())["old_transaction"]
        assert "a forgotten shell" in found.seen
        sick.rows(found.command.partition("'")[2].removesuffix("'"))

        async def ended() -> bool:
            return "old_transaction" not in await doctor()

        await eventually_async(ended, timeout=10, what="it is gone: a backend needs a moment to end")
        with pytest.raises(psycopg.OperationalError):
            forgetful.execute("SELECT 1")


async def test_dead_rows_that_cannot_be_removed_are_named(
    sick: RefreshSession, livewell_dsn: str, doctor: Examine
) -> None:
    """An old snapshot keeps them; the command is run as it is given."""
    with psycopg.connect(livewell_dsn) as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        sick.enqueue(11_000)
        sick.rows("DELETE FROM livewell.job")
        sick.rows("SELECT pg_stat_force_next_flush()")
        found = (await doctor())["bloat"]
        assert found.subject == "job"
        assert found.command == "psql -c 'VACUUM (ANALYZE) livewell.job'"


# ── work ──


async def test_a_paused_queue_with_work_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """And the command opens it."""
    sick.enqueue(3)
    sick.pause()
    sick.advance(90)
    found = (await doctor())["queue_paused"]
    assert (found.subject, found.command) == ("work", "livewell queues resume work")
    assert "3 jobs wait" in found.seen


async def test_a_queue_without_a_worker_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """After a minute; before that it is not worth a word."""
    sick.enqueue(1)
    assert "queue_without_worker" not in await doctor()
    sick.advance(90)
    assert (await doctor())["queue_without_worker"].command == "livewell worker APP --queue work"


async def test_a_queue_whose_task_nobody_has_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """The worker lives, and has other tasks."""
    working(sick, kinds="{other}")
    sick.enqueue(1)
    sick.advance(90)
    found = (await doctor())["queue_without_task"]
    assert "task" in found.command
    assert "queue_without_worker" not in await doctor()


async def test_a_queue_that_does_not_clear_is_named_with_the_reason(sick: RefreshSession, doctor: Examine) -> None:
    """A worker with the task lives, and claims nothing."""
    working(sick)
    [job] = sick.enqueue(1)
    sick.advance(700)
    found = (await doctor())["queue_not_clearing"]
    assert found.command == f"livewell jobs why {job}"
    assert "a worker should take it" in found.means


async def test_a_queue_that_falls_behind_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """Something is done, and far too little."""
    working(sick)
    sick.enqueue(1001)
    sick.advance(1900)
    sick.rows("SELECT livewell.add_stats('{work}', '{task}', '{succeeded}', '{5}', '{100}')")
    assert (await doctor())["queue_behind"].subject == "work"


async def test_delayed_jobs_that_nobody_promotes_are_named(sick: RefreshSession, doctor: Examine) -> None:
    """Q12: no worker runs."""
    sick.enqueue(2, delay_seconds=10)
    sick.advance(100)
    found = (await doctor())["delayed_overdue"]
    assert found.seen.startswith("2 delayed jobs")


async def test_a_dead_worker_that_nobody_buries_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """By whom jobs are held, and how many."""
    worker = sick.register(lease=45, name="old:17")
    sick.enqueue(2)
    sick.claim(worker)
    sick.advance(200)
    found = (await doctor())["lease_expired"]
    assert (found.subject, "holds 2 jobs" in found.seen) == ("old:17", True)


async def test_a_singleton_that_nobody_took_over_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """The due check has no holder."""
    sick.hold(lease=5)
    sick.advance(100)
    found = (await doctor())["singleton_abandoned"]
    assert (found.subject, found.command) == ("refresh.due", "livewell worker APP")


async def test_a_singleton_that_one_run_holds_for_long_is_named_with_its_holder(
    sick: RefreshSession, doctor: Examine
) -> None:
    """R23: more than ten minutes.

    The due check is held for as long as its worker lives, and is no finding.
    """
    sick.hold("report.daily", lease=LIVING)
    sick.hold(lease=LIVING)
    sick.advance(700)
    found = [finding for finding in (await doctor()).values() if finding.word.startswith("singleton")]
    assert [(one.word, one.subject) for one in found] == [("singleton_held", "report.daily")]
    assert "held by test for 11.7 min" in found[0].seen


async def test_workers_of_another_release_are_named(sick: RefreshSession, doctor: Examine) -> None:
    """And who they are."""
    working(sick)
    assert "version_skew" not in await doctor()
    working(sick, version="0.0.1")
    found = (await doctor())["version_skew"]
    assert "0.0.1: mia" in found.seen


async def test_dead_letters_are_named_by_reason(sick: RefreshSession, doctor: Examine) -> None:
    """With an example and both commands; after a day they are history."""
    sick.enqueue(1)
    [claim] = sick.claim(working(sick))
    sick.settle(claim, "refused", reason="refused", error="no such customer")
    found = (await doctor())["dead_letters"]
    assert "1 jobs task of queue work died in the last day (refused" in found.seen
    assert "no such customer" in found.seen
    assert "livewell dead redrive --queue work" in found.command
    sick.advance(90_000)
    assert "dead_letters" not in await doctor()


async def test_a_schedule_that_is_late_is_named(doctor: Examine) -> None:
    """Where no scheduler ever ran, its loop is late."""
    found = (await doctor())["schedule_late"]
    assert "livewell worker" in found.command


async def test_a_schedule_whose_slots_pass_is_named(sick: RefreshSession, doctor: Examine) -> None:
    """A scheduler lives, and does not have its handler."""
    sick.rows(
        "SELECT livewell.declare_schedule('report', 'interval', NULL, NULL, '5 minutes', NULL, 'once', '1 "
        "minute', false, false)"
    )
    sick.advance(661)
    sick.rows("SELECT livewell.record_pulse('schedule.loop', 'test', '1 minute', 1, 0)")
    found = (await doctor())["schedule_late"]
    assert found.subject == "report"
    assert found.seen.startswith("Schedule report is late by ")
    assert "livewell schedules run report" in found.command


async def test_an_alert_channel_that_is_disabled_is_named(
    sick: RefreshSession, doctor: Examine, livewell_dsn: str
) -> None:
    """Its receiver says 410; enabled again, as the command says, it is no finding."""
    private = Settings(database_url=SecretStr(livewell_dsn), outbound_private_hosts=("127.0.0.1",))
    async with Receiver() as receiver, opened(livewell_dsn, private) as database:
        receiver.answer = always(410)
        channel = Channel("ops", "discord", "P2", "env:OPS_URL", SecretStr(receiver.url))
        await deliver(database, [channel])
        sick.rows("SELECT * FROM livewell.observe_alerts('sky', 'P1', '10 minutes', '{roof}', '{it falls}')")
        await deliver(database, [channel])
    found = (await doctor())["channel_disabled"]
    assert found.subject == "ops"
    assert "410" in found.seen
    assert "OPS_URL" in found.command
    assert "livewell alerts enable ops" in found.command
    sick.rows("SELECT livewell.enable_channel('ops')")
    assert "channel_disabled" not in await doctor()


async def test_contacts_that_wait_for_a_person_are_named(sick: RefreshSession, doctor: Examine) -> None:
    """After a week; decided, it is no finding."""
    resolve = "SELECT livewell.resolve_contact('acme inc', '{external_id,email}', %s)"
    sick.value(resolve, ["1", "ann@example.com"])
    [conflict] = sick.value(resolve, ["2", "ann@example.com"])["conflicts"]
    assert "contact_conflicts" not in await doctor()
    sick.rows("UPDATE livewell.contact_conflict SET opened_at = opened_at - interval '8 days'")
    found = (await doctor())["contact_conflicts"]
    assert found.subject == "acme inc"
    assert "livewell contacts conflicts --tenant 'acme inc'" in found.command
    sick.value("SELECT livewell.decide_contact_conflict('acme inc', %s, 'merge', 'a test')", conflict)
    assert "contact_conflicts" not in await doctor()


async def test_an_alert_rule_that_gives_no_answer_is_named(
    sick: RefreshSession, doctor: Examine, livewell_dsn: str, livewell_settings: Settings
) -> None:
    """With its error; evaluated again, it is no finding."""
    async with opened(livewell_dsn, livewell_settings) as database:
        with variant(livewell_dsn, "rule_breaker_open", ("RETURN QUERY", "PERFORM 1 / 0; RETURN QUERY")):
            await evaluate(database, rules=["breaker_open"])
        found = (await doctor())["rule_failed"]
        assert found.subject == "breaker_open"
        assert "division by zero" in found.seen
        await evaluate(database, rules=["breaker_open"])
    assert "rule_failed" not in await doctor()
    assert sick.value("SELECT count(*) FROM livewell.warning WHERE place = 'alerts.rules'") == 1


# ── freshness ──


def watched(sick: RefreshSession) -> None:
    """Somebody watches a key that has no value, and goes on doing so; a minute passes."""
    session = sick.open("ann")
    sick.subscribe(session, "AAPL", user="ann")
    sick.advance(90)
    sick.heartbeat(session, "ann")


async def test_a_type_that_nobody_refreshes_is_named_with_the_reason(sick: RefreshSession, doctor: Examine) -> None:
    """The first thing that stands in its way, one after another, each with what removes it."""
    watched(sick)
    reasons = []

    async def reason() -> None:
        found = (await doctor())["type_never_refreshes"]
        assert found.subject == "quote"
        reasons.append(found.command)

    await reason()
    working(sick, "refresh.api", kinds="{livewell.refresh}")
    await reason()
    sick.hold(lease=LIVING)
    await reason()
    sick.rows("SELECT livewell.pause_queue('refresh.api', true)")
    sick.rows("DELETE FROM livewell.state_sample")
    await reason()
    sick.rows("SELECT livewell.pause_upstream('api', true)")
    await reason()
    sick.rows("SELECT livewell.pause_type('quote', true)")
    await reason()
    assert reasons == [
        "livewell worker --queue refresh.api",
        "livewell worker --queue 'refresh.*'",
        "livewell types show quote",
        "livewell queues resume refresh.api",
        "livewell types resume --upstream api",
        "livewell types resume quote",
    ]


async def test_a_small_type_is_not_overlooked_in_a_large_ledger(sick: RefreshSession, doctor: Examine) -> None:
    """The state is estimated from some pages.

    One key of a type of its own is found all the same.
    """
    sick.type("rare")
    sick.rows(
        "INSERT INTO livewell.ledger (data_type, key, upstream, status_at, fetched_at, checked_at, source_at) "
        "SELECT 'quote', 'K' || n, 'api', livewell.now(), livewell.now(), livewell.now(), livewell.now() FROM "
        "generate_series(1, 20000) AS n"
    )
    session = sick.open("ann")
    sick.subscribe(session, "ONE", user="ann", of="rare")
    sick.advance(90)
    sick.heartbeat(session, "ann")
    assert sick.value("SELECT livewell.state_refresh() ->> 'how'") == "estimated"
    assert (await doctor())["type_never_refreshes"].subject == "rare"


def limited(sick: RefreshSession, **limits: Any) -> int:
    """A queue with this limiter and a hundred jobs; answers a worker for it."""
    sick.limiter("tight", **limits)
    sick.declare("calls", limiter="tight", attempts=100, base=0, cap=0)
    sick.enqueue(100, queue="calls", lane=0)
    return working(sick, "calls")


def calls(sick: RefreshSession, worker: int, n: int, outcome: str = "succeeded", **details: object) -> None:
    """So many calls, one after another, that end like this."""
    for _ in range(n):
        [one] = sick.claim_limited(worker, 1, queue="calls")
        assert isinstance(one, LimitedClaim)
        sick.end(one, outcome, **details)


@pytest.mark.parametrize(("n", "word"), [(15, "quota_high"), (17, "quota_background"), (19, "quota_reached")])
async def test_a_quota_is_named_before_and_when_it_is_used_up(
    sick: RefreshSession, doctor: Examine, n: int, word: str
) -> None:
    """75 %, where background work stops, and where everything does."""
    worker = limited(sick, budget_units=20, budget_unit="calls", budget_seconds=86400 * 30)
    calls(sick, worker, 3, used=1)
    assert {"quota_high", "quota_background", "quota_reached"}.isdisjoint(await doctor())
    calls(sick, worker, n - 3, used=1)
    found = await doctor()
    assert {one for one in found if one.startswith("quota")} == {word}
    assert f"{n / 20:.1%} of 20 calls" in found[word].seen
    assert " at the pace of the last day" in found[word].means or "room again in" in found[word].means


async def test_an_open_breaker_is_named_with_until_when(sick: RefreshSession, doctor: Examine) -> None:
    """Three failures in a row, blamed on the upstream, open it."""
    worker = limited(sick, breaker_failures=5, breaker_in_row=3, open_seconds=60)
    calls(sick, worker, 2, "retry", ended="upstream", delay_seconds=0)
    assert "breaker_open" not in await doctor()
    calls(sick, worker, 1, "retry", ended="upstream", delay_seconds=0)
    found = (await doctor())["breaker_open"]
    assert found.subject == "tight"
    assert "is open, calls are stopped until" in found.seen
    assert "3 of 3 calls failed" in found.seen


async def test_subscriptions_that_nobody_stands_behind_are_named(sick: RefreshSession, doctor: Examine) -> None:
    """Heartbeats do not arrive; the sweep does not run."""
    sick.subscribe(sick.open("ann"), "AAPL", "MSFT", user="ann")
    assert "no_viewers" not in await doctor()
    sick.advance(301)
    found = (await doctor())["no_viewers"]
    assert "2 subscriptions" in found.seen


# ── the doctor himself ──


async def test_a_check_that_fails_is_itself_a_finding_and_the_others_go_on(
    livewell_dsn: str, livewell_settings: Settings
) -> None:
    """Also one that never ends: two seconds are enough for the others on a busy machine, too."""

    async def broken(patient: Patient) -> Sequence[Finding]:
        raise KeyError(str(patient.state["at"]))

    async def endless(patient: Patient) -> Sequence[Finding]:
        await asyncio.Event().wait()
        raise AssertionError(patient)

    async def sound(patient: Patient) -> Sequence[Finding]:
        assert patient
        return [Finding("sound", "", "", "", "")]

    found = await examine(livewell_dsn, livewell_settings, checks=(broken, endless, sound))
    assert [(one.word, one.subject) for one in found] == [
        ("check_failed", "broken"),
        ("check_failed", "endless"),
        ("sound", ""),
    ]


async def test_a_part_of_the_state_that_cannot_be_read_is_a_finding(sick: RefreshSession, doctor: Examine) -> None:
    """The others are judged all the same."""
    sick.rows(
        "CREATE OR REPLACE FUNCTION livewell.state_limits() RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE "
        "EXCEPTION 'no'; END $$"
    )
    sick.enqueue(1)
    sick.advance(90)
    found = await doctor()
    assert found["check_failed"].subject == "state limits"
    assert "queue_without_worker" in found


def test_findings_are_documents(sick: RefreshSession) -> None:
    """For --json."""
    assert sick
    finding = Finding("word", "subject", "seen", "means", "command")
    assert json.loads(json.dumps(finding.document())) == finding.document()
