"""The loop around the due check.

One of many does it, nudges wake it, schedules tick, outages pass, and a stop hands over at once.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from livewell import Settings
from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.db.scratch import TestClock
from livewell.refresh.due.check import DueCheck
from livewell.refresh.nudges import DUE
from livewell.refresh.subscribe.subscriptions import Subscriptions, UnknownSession
from livewell.schedule.cron import next_slot
from livewell.schedule.scheduler import Scheduler
from livewell.testing.proxy import TcpProxy
from tests.support.refresh_sql import RefreshSession

WAIT_SECONDS = 20.0


@pytest.fixture
def rows(livewell_dsn: str) -> Iterator[RefreshSession]:
    with RefreshSession(livewell_dsn) as session:
        session.reset()
        yield session


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[tuple[Database, Nudger]]:
    assert settings.database_url is not None
    database = Database(settings.database_url.get_secret_value(), settings)
    await database.open()
    nudger = Nudger(database)
    try:
        yield database, nudger
    finally:
        await nudger.close()
        await database.close()


@asynccontextmanager
async def running(*checks: DueCheck) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.run()) for one in checks]
    try:
        yield
    finally:
        for one in checks:
            one.stop()
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.gather(*tasks)


async def until(true: Callable[[], object]) -> None:
    """Wait for something another task does; bounded."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not true():  # noqa: ASYNC110 - what it waits for is in the database
            await asyncio.sleep(0.005)


async def test_a_subscription_becomes_a_job_without_waiting_for_the_next_turn(
    rows: RefreshSession, livewell_settings: Settings
) -> None:
    """The nudge wakes the due check; polling would take ten seconds here."""
    async with opened(livewell_settings) as (database, nudger):
        check = DueCheck(database, nudger, holder="test", poll_seconds=10)
        viewers = Subscriptions(database, nudger)
        async with running(check):
            await until(lambda: check.counts["turns"])
            session = await viewers.open("ann")
            assert isinstance(session, uuid.UUID)
            started = time.monotonic()
            watched = await viewers.subscribe(session, "ann", [("quote", "AAPL")])
            await until(rows.jobs)

    assert time.monotonic() - started < 5
    assert isinstance(watched, list)
    assert [(one.answer, one.verdict, one.wanted) for one in watched] == [("subscribed", "missing", True)]


async def test_a_subscription_in_the_middle_of_a_look_is_seen_by_the_next_one(
    rows: RefreshSession, livewell_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look may have read before it was committed.

    Seen failing while the end of a look put off the next one.
    """
    async with opened(livewell_settings) as (database, nudger):
        check = DueCheck(database, nudger, holder="test", poll_seconds=10)
        viewers = Subscriptions(database, nudger)
        session = await viewers.open("ann")
        assert isinstance(session, uuid.UUID)
        call, subscribed = check._link.call, False

        async def late(query: str, params: Sequence[Any] = ()) -> list[Any]:
            nonlocal subscribed
            answer = await call(query, params)
            if "dispatch_due" in query and not subscribed:
                subscribed = True
                await viewers.subscribe(session, "ann", [("quote", "AAPL")])
                check.wake(DUE)
            return answer

        monkeypatch.setattr(check._link, "call", late)
        await check.turn()
        assert not rows.jobs()

        await check.turn()
        assert rows.jobs() == [("quote:AAPL",)]
        monkeypatch.undo()
        await check._leave()


async def test_what_nobody_wants_any_more_is_ended(
    rows: RefreshSession, livewell_settings: Settings, livewell_dsn: str
) -> None:
    """H1. No worker took it, and its viewer has gone."""
    TestClock(livewell_dsn)
    session = rows.open()
    rows.subscribe(session, "AAPL")
    rows.dispatch()
    assert rows.jobs() == [("quote:AAPL",)]
    rows.rows("DELETE FROM livewell.singleton")
    rows.close_session(session)
    rows.advance(11)
    async with opened(livewell_settings) as (database, nudger):
        check = DueCheck(database, nudger, holder="test", poll_seconds=0.05)
        async with running(check):
            await until(lambda: not rows.jobs())

    assert check.counts["dropped"] == 1


async def test_viewers_in_python_give_typed_answers(rows: RefreshSession, livewell_settings: Settings) -> None:
    """Unknown sessions are a value.

    Keys that do not fit their pattern are answered so, in their place.
    """
    async with opened(livewell_settings) as (database, nudger):
        viewers = Subscriptions(database, nudger)
        session = await viewers.open("ann")
        assert isinstance(session, uuid.UUID)

        assert await viewers.subscribe(uuid.uuid4(), "ann", [("quote", "A")]) == UnknownSession()
        assert await viewers.unsubscribe(session, "eve", [("quote", "A")]) == UnknownSession()
        watched = await viewers.subscribe(session, "ann", [("quote", "a b"), ("quote", "A")])
        assert isinstance(watched, list)
        assert [(one.key, one.answer) for one in watched] == [("a b", "bad_key"), ("A", "subscribed")]
        assert await viewers.count("quote", "A") == 1
        assert await viewers.heartbeat(session, "ann")
        assert await viewers.unsubscribe(session, "ann", [("quote", "A")]) == 1
        assert [await viewers.close(session, "ann") for _ in range(2)] == [True, False]
        assert await viewers.open("ann", session=session) == session


async def test_one_of_three_does_it_and_a_stop_hands_over_at_once(
    rows: RefreshSession, livewell_settings: Settings
) -> None:
    """The lease is a minute; the next one begins long before that."""
    async with opened(livewell_settings) as (database, nudger):
        three = [DueCheck(database, nudger, holder=name, lease_seconds=60, poll_seconds=0.2) for name in "abc"]
        async with running(*three):
            await until(lambda: sum(one.singleton.fence is not None for one in three))
            [holder] = [one for one in three if one.singleton.fence is not None]
            holder.stop()
            await until(lambda: any(one.singleton.fence == 2 for one in three if one is not holder))

        assert sum(one.singleton.fence is not None for one in three) == 0
        assert rows.value("SELECT fence FROM livewell.singleton") >= 2


async def test_an_outage_is_survived_and_counted(
    rows: RefreshSession, livewell_settings: Settings, livewell_dsn: str
) -> None:
    """The database goes away and comes back.

    What was subscribed meanwhile becomes a job, and a warning says what happened.
    """
    parts = conninfo_to_dict(livewell_dsn)
    async with TcpProxy(str(parts["host"]), int(str(parts["port"]))) as proxy:
        through = make_conninfo("", **{**parts, "host": "127.0.0.1", "port": str(proxy.port)})
        settings = livewell_settings.model_copy(update={"database_url": SecretStr(through)})
        async with opened(settings) as (database, nudger):
            check = DueCheck(database, nudger, holder="test", lease_seconds=0.5, poll_seconds=0.05)
            async with running(check):
                await until(lambda: check.counts["turns"])
                proxy.refuse()
                proxy.cut()
                await until(lambda: check.counts["outages"])
                rows.subscribe(rows.open(), "AAPL")
                proxy.heal()
                await until(rows.jobs)
                await until(lambda: rows.column("SELECT what FROM livewell.warning WHERE place = 'refresh.due'"))


@asynccontextmanager
async def scheduling(database: Database, nudger: Nudger) -> AsyncIterator[Scheduler]:
    """A scheduler beside the due check, as in every worker."""
    scheduler = Scheduler(database, nudger, [], holder="test", poll_seconds=0.05)
    task = asyncio.create_task(scheduler.run())
    try:
        yield scheduler
    finally:
        task.cancel()
        await asyncio.wait([task])


DUE_AT = "SELECT due_at FROM livewell.schedule WHERE name = %s"


async def test_a_scheduled_type_walks_when_its_time_has_come(
    rows: RefreshSession, livewell_settings: Settings, livewell_clock: TestClock
) -> None:
    """Planned from the database's clock; every active key once, on the background lane.

    Then planned again.
    """
    rows.type("daily", strategy="scheduled", cron="0 6 * * *", zone="America/New_York", ttl="2 days")
    rows.rows(
        "INSERT INTO livewell.universe (data_type, key, active, added_at) SELECT 'daily', 'K' || n, n <= 5, "
        "livewell.now() FROM generate_series(1, 6) AS n"
    )
    async with opened(livewell_settings) as (database, nudger):
        check = DueCheck(database, nudger, holder="test", poll_seconds=0.05)
        async with running(check), scheduling(database, nudger):
            await until(lambda: rows.column(DUE_AT, "walk.daily") not in ([], [None]))
            planned = rows.value(DUE_AT, "walk.daily")
            assert planned == next_slot("0 6 * * *", "America/New_York", rows.now())
            assert rows.jobs() == []
            livewell_clock.advance((planned - rows.now()).total_seconds() + 1)
            await until(lambda: len(rows.jobs()) == 5)
            shown = (
                "SELECT due_at > %s, last_state, last_rows, late FROM livewell.list_schedules() WHERE name = "
                "'walk.daily'"
            )
            await until(lambda: rows.rows(shown, planned) == [(True, "succeeded", 5, False)])

    assert {lane for (lane,) in rows.jobs("lane")} == {1}


async def test_another_cron_text_holds_without_a_restart(rows: RefreshSession, livewell_settings: Settings) -> None:
    """The schedule follows the registry, and goes with the type."""
    rows.type("daily", strategy="scheduled", cron="0 6 * * *", zone="UTC")
    async with opened(livewell_settings) as (database, nudger):
        check = DueCheck(database, nudger, holder="test", poll_seconds=0.05)
        async with running(check), scheduling(database, nudger):
            await until(lambda: rows.column(DUE_AT, "walk.daily") == [next_slot("0 6 * * *", "UTC", rows.now())])
            rows.rows("SELECT livewell.change_type('daily', NULL, 'scheduled', '30 7 * * *', 'Europe/Paris')")
            await until(
                lambda: rows.column(DUE_AT, "walk.daily") == [next_slot("30 7 * * *", "Europe/Paris", rows.now())]
            )
            rows.rows("SELECT livewell.change_type('daily', NULL, 'on_demand', NULL, NULL)")
            await until(lambda: rows.column(DUE_AT, "walk.daily") == [])


async def test_a_walk_that_was_asked_for_goes_on_in_another_process(
    rows: RefreshSession, livewell_settings: Settings
) -> None:
    """The process that began it is gone; the run is still the same one, and ends."""
    rows.type("daily", strategy="scheduled", cron="0 6 * * *", zone="UTC")
    rows.rows("INSERT INTO livewell.universe (data_type, key, added_at) VALUES ('daily', 'K', livewell.now())")
    rows.rows("SELECT livewell.sync_walks()")
    rows.rows("SELECT livewell.ask_run('walk.daily')")
    async with opened(livewell_settings) as (database, nudger):
        async with scheduling(database, nudger) as scheduler:
            await until(lambda: scheduler.counts["begun"])
        assert rows.column("SELECT state::text FROM livewell.run") == ["running"]
        check = DueCheck(database, nudger, holder="other", poll_seconds=0.05)
        async with running(check):
            ended = "SELECT state::text, rows_affected, asked, holder FROM livewell.run"
            await until(lambda: rows.rows(ended) == [("succeeded", 1, True, "other")])


async def test_a_schedule_that_cannot_be_read_stops_nothing_else(
    rows: RefreshSession, livewell_settings: Settings
) -> None:
    """It is warned of, and the others are planned."""
    rows.type("a_bad", strategy="scheduled", cron="every day", zone="UTC")
    rows.type("b_bad", strategy="scheduled", cron="0 6 * * *", zone="Mars/Olympus")
    rows.type("c_good", strategy="scheduled", cron="0 6 * * *", zone="UTC")
    warned = (
        "SELECT count(*) FROM livewell.warning WHERE place = 'schedule' AND what LIKE 'a schedule cannot be "
        "read: walk.%%_bad'"
    )
    async with opened(livewell_settings) as (database, nudger):
        check = DueCheck(database, nudger, holder="test", poll_seconds=0.05)
        async with running(check), scheduling(database, nudger):
            await until(lambda: rows.column(DUE_AT, "walk.c_good") not in ([], [None]))
            await until(lambda: rows.value(warned) == 2)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (datetime(2026, 3, 7, 12, tzinfo=UTC), datetime(2026, 3, 8, 10, 0, tzinfo=UTC)),
        (datetime(2026, 11, 1, 5, tzinfo=UTC), datetime(2026, 11, 1, 11, 0, tzinfo=UTC)),
    ],
)
def test_cron_is_right_where_clocks_change(after: datetime, expected: datetime) -> None:
    """Six in the morning in New York, whatever the offset."""
    assert next_slot("0 6 * * *", "America/New_York", after) == expected
