"""app.sync: blocking code gets the same, through one portal thread.

Broken once: a call that does not cancel when its block is left (the interrupts and the bound fail),
a child that does not start anew after a fork (both fork tests fail), a statement on the caller's
connection that runs in the portal's thread (Django's fails).
"""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from livewell import Answer, Cancelled, Livewell, LivewellError, Settings
from livewell.errors import DatabaseUnavailable, InvalidOption, InvalidPayload, JobNotFound, UnknownTask
from livewell.queue.admin import QueueAdmin
from livewell.queue.task import Task
from livewell.sync.admin import SyncAdmin
from livewell.testing import InlineWorker, opened
from livewell.testing.processes import eventually
from tests.support.queue_sql import QueueSession

LIVE = "SELECT (payload ->> 'user_id')::int FROM livewell.job ORDER BY id"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'livewell'"


class Shop:
    """An app with one task."""

    def __init__(self, settings: Settings) -> None:
        self.app = Livewell(settings)
        self.sync = self.app.sync

        @self.app.task(queue="mail")
        def welcome(user_id: int) -> None:
            """Greets."""

        self.welcome: Task[Any, Any] = welcome


@pytest.fixture
def shop(livewell_settings: Settings) -> Iterator[Shop]:
    """Closed at the end; it opens itself."""
    shop = Shop(livewell_settings)
    yield shop
    shop.sync.close()


@pytest.fixture
def observer(livewell_dsn: str) -> Iterator[QueueSession]:
    """A connection of the test's own."""
    with QueueSession(livewell_dsn) as session:
        yield session


def portals() -> int:
    return sum(thread.name == "livewell-sync" for thread in threading.enumerate())


# -- opening and closing -------------------------------------------------------------------------


def test_a_block_opens_one_portal_and_closes_it(shop: Shop, observer: QueueSession) -> None:
    """Afterwards there is neither a thread nor a connection."""
    with shop.sync as sync:
        assert sync.enqueue(shop.welcome, user_id=7).answer is Answer.INSERTED
        assert portals() == 1

    assert observer.column(LIVE) == [7]
    assert portals() == 0
    eventually(lambda: observer.value(SESSIONS) == 0, timeout=5)


def test_it_opens_on_first_use_and_again_after_a_close(shop: Shop, observer: QueueSession) -> None:
    """Nobody has to say open()."""
    shop.sync.enqueue("welcome", user_id=1)
    shop.sync.close()
    shop.sync.enqueue("welcome", user_id=2)

    assert observer.column(LIVE) == [1, 2]
    assert portals() == 1


def test_the_last_of_several_blocks_closes(shop: Shop) -> None:
    """A thread that ends its block takes the portal from nobody."""
    with shop.sync:
        with shop.sync:
            pass
        assert portals() == 1
    assert portals() == 0


def test_an_open_that_fails_leaves_nothing_and_can_be_repeated(shop: Shop, livewell_settings: Settings) -> None:
    """The next call finds a database that is there by then."""
    away = livewell_settings.model_validate(
        {**livewell_settings.model_dump(), "database_url": "postgresql://127.0.0.1:1/none"}
    )
    with pytest.raises(LivewellError):
        shop.sync.open(settings=away)
    assert portals() == 0

    shop.sync.open(settings=livewell_settings)
    assert shop.sync.enqueue(shop.welcome, user_id=1).answer is Answer.INSERTED


async def test_an_app_that_is_open_in_a_loop_is_used_there(livewell_settings: Settings, observer: QueueSession) -> None:
    """A blocking handler enqueues the next job through the worker's own loop.

    No second pool, and nothing is closed.
    """
    app = Livewell(livewell_settings)

    @app.task(queue="mail", name="first")
    def first(user_id: int) -> None:
        with app.sync, app.sync.transaction() as tx:
            app.sync.enqueue("second", user_id=user_id, tx=tx)
        seen.append(portals())

    @app.task(queue="mail", name="second")
    def second(user_id: int) -> None:
        seen.append(user_id)

    seen: list[int] = []
    async with opened(app, livewell_settings):
        await first.enqueue(user_id=7)
        ran = await InlineWorker(app).run()

    assert [run.kind for run in ran] == ["first", "second"]
    assert seen == [0, 7]


async def test_a_loop_that_took_the_app_over_is_used_then_left(shop: Shop, livewell_settings: Settings) -> None:
    """The portal that was open before is closed, and a new one opens after the loop has closed the app."""
    await asyncio.to_thread(shop.sync.enqueue, shop.welcome, user_id=1)
    async with opened(shop.app, livewell_settings):
        await asyncio.to_thread(shop.sync.enqueue, shop.welcome, user_id=2)
        assert portals() == 0

    await asyncio.to_thread(shop.sync.enqueue, shop.welcome, user_id=3)
    assert portals() == 1
    await asyncio.to_thread(shop.sync.close)


def test_an_app_that_a_dead_loop_left_open_is_refused(shop: Shop, livewell_settings: Settings) -> None:
    """Its connections belong to a loop that will never run again."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(shop.app.open(settings=livewell_settings))

    with pytest.raises(LivewellError, match="event loop that does not run"):
        shop.sync.enqueue(shop.welcome, user_id=1)

    loop.run_until_complete(shop.app.close())
    loop.close()


# -- using ---------------------------------------------------------------------------------------


def test_threads_use_it_at_once_and_share_one_portal(shop: Shop, observer: QueueSession) -> None:
    """Eight threads meet a closed app together; every job exists once."""
    together = threading.Barrier(8)

    def enqueue(thread: int) -> None:
        together.wait(10)
        for n in range(25):
            with shop.sync.transaction() as tx:
                shop.sync.enqueue(shop.welcome, user_id=thread * 100 + n, tx=tx)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(enqueue, range(8)))

    assert sorted(observer.column(LIVE)) == [thread * 100 + n for thread in range(8) for n in range(25)]
    assert portals() == 1


def test_options_many_and_reserved_ids(shop: Shop, observer: QueueSession) -> None:
    """What the async API can say, blocking code can say."""
    (job_id,) = shop.sync.reserve_ids()

    sent = shop.sync.enqueue(shop.welcome.options(id=job_id, delay="5m", unique_key="u7"), user_id=7)
    merged = shop.sync.enqueue(shop.welcome.options(unique_key="u7"), user_id=7)
    many = shop.sync.enqueue_many(shop.welcome, ({"user_id": n} for n in range(3)))

    assert (sent.answer, sent.id) == (Answer.INSERTED, job_id)
    assert (merged.answer, merged.id) == (Answer.MERGED, job_id)
    assert [one.answer for one in many] == [Answer.INSERTED] * 3
    assert sorted(observer.column(LIVE)) == [0, 1, 2, 7]


def test_errors_arrive_as_they_are(shop: Shop) -> None:
    """The same classes as in async code."""
    with pytest.raises(UnknownTask, match="welcome"):
        shop.sync.enqueue("nobody")
    with pytest.raises(InvalidPayload):
        shop.sync.enqueue(shop.welcome, user_id="seven")
    with pytest.raises(JobNotFound):
        shop.sync.admin.job(1 << 40)
    with pytest.raises(TypeError):
        shop.sync.call(shop.app.reserve_ids, 1, 2)  # type: ignore[call-arg]


def test_the_admin_looks_and_cancels(shop: Shop) -> None:
    """A job is found, shown and cancelled."""
    job_id = shop.sync.enqueue(shop.welcome, user_id=7).id
    admin = shop.sync.admin

    assert [job["id"] for job in admin.jobs(queue="mail")] == [job_id]
    assert admin.job(job_id)["state"] == "ready"
    assert admin.cancel(job_id) is Cancelled.NOW
    assert admin.jobs(queue="mail") == []


def test_the_admin_has_every_method_of_the_async_one() -> None:
    """A method that is added there must be added here: one line."""
    methods = {name for name, value in vars(QueueAdmin).items() if inspect.iscoroutinefunction(value)}
    assert {name for name in vars(SyncAdmin) if not name.startswith("_")} == methods


# -- transactions --------------------------------------------------------------------------------


def test_a_commit_makes_the_job_and_nudges_after_it(shop: Shop, observer: QueueSession) -> None:
    """Nobody sees it before, nobody is woken before."""
    shop.sync.open()
    heard: list[str] = []
    shop.app.nudger.attach(heard.append)
    with shop.sync.transaction() as tx:
        tx.execute("CREATE TABLE customer (id integer)")
        assert tx.execute("INSERT INTO customer VALUES (%s), (%s)", (7, 8)) == 2
        assert tx.fetch("SELECT id FROM customer ORDER BY id") == [(7,), (8,)]
        shop.sync.enqueue(shop.welcome, user_id=7, tx=tx)
        shop.sync.enqueue_many(shop.welcome, [{"user_id": 8}], tx=tx)
        assert (observer.column(LIVE), heard) == ([], [])

    assert observer.column(LIVE) == [7, 8]
    assert observer.value("SELECT count(*) FROM customer") == 2
    assert set(heard) == {"mail"}


def test_a_rollback_leaves_no_job(shop: Shop, observer: QueueSession) -> None:
    """And is over when the error is seen: nothing of ours is locked or open any more."""
    with pytest.raises(ValueError, match="card declined"), shop.sync.transaction() as tx:
        shop.sync.enqueue(shop.welcome, user_id=7, tx=tx)
        raise ValueError("card declined")

    assert observer.column(LIVE) == []
    assert (
        observer.value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in "
            "transaction%'"
        )
        == 0
    )


def test_an_error_of_the_callers_own_sql_is_postgres_own(shop: Shop) -> None:
    """As in async code; swallowed, it is noticed at the commit."""
    with pytest.raises(psycopg.errors.DivisionByZero), shop.sync.transaction() as tx:
        tx.execute("SELECT 1 / 0")
    with pytest.raises(LivewellError, match="nothing was committed"), shop.sync.transaction() as tx:
        shop.sync.enqueue(shop.welcome, user_id=7, tx=tx)
        with pytest.raises(psycopg.errors.DivisionByZero):
            tx.execute("SELECT 1 / 0")


def test_closing_rolls_back_what_another_thread_holds_open(shop: Shop, observer: QueueSession) -> None:
    """The holder gets an error, not a commit and not a hang."""
    with pytest.raises(LivewellError, match="closed"), shop.sync.transaction() as tx:
        shop.sync.enqueue(shop.welcome, user_id=7, tx=tx)
        closing = threading.Thread(target=shop.sync.close)
        closing.start()
        closing.join(10)
        tx.execute("SELECT 1")

    assert observer.column(LIVE) == []
    assert portals() == 0


def test_a_full_pool_is_an_error_at_the_start_of_the_block(livewell_settings: Settings) -> None:
    """One connection, two transactions."""
    shop = Shop(livewell_settings.model_copy(update={"pool_size_max": 1, "pool_wait_seconds": 0.1}))
    full = pytest.raises(DatabaseUnavailable, match="POOL_SIZE_MAX")
    with shop.sync, shop.sync.transaction(), full, shop.sync.transaction():
        pytest.fail("there was a connection")


# -- a connection of the caller's own ------------------------------------------------------------


class LikeSqlAlchemy:
    """Its Connection: execute() takes no text, exec_driver_sql() takes text and a tuple."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: Any, params: Any = None) -> Any:
        raise TypeError(f"not an executable object: {query!r} {params!r}")

    def exec_driver_sql(self, query: str, params: tuple[Any, ...]) -> Any:
        return self._connection.execute(query.encode(), params)


class LikeDjango:
    """A DB-API cursor: execute() answers nothing, and only the thread that made it may use it."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._cursor = connection.cursor()
        self._thread = threading.get_ident()

    def execute(self, query: str, params: Any = None) -> None:
        assert threading.get_ident() == self._thread
        self._cursor.execute(query.encode(), params)

    def fetchall(self) -> list[Any]:
        assert threading.get_ident() == self._thread
        return self._cursor.fetchall()


FOREIGN = {
    "connection": lambda connection: connection,
    "cursor": lambda connection: connection.cursor(row_factory=dict_row),
    "sqlalchemy": LikeSqlAlchemy,
    "django": LikeDjango,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_job_belongs_to_the_callers_own_transaction(
    shop: Shop, livewell_dsn: str, observer: QueueSession, kind: str
) -> None:
    """It exists when that commits, and does not when it rolls back.

    The answer tells merged from inserted.
    """
    with psycopg.connect(livewell_dsn) as connection:
        tx = FOREIGN[kind](connection)
        shop.sync.enqueue(shop.welcome, user_id=1, tx=tx)
        connection.rollback()
        kept = shop.sync.enqueue(shop.welcome.options(unique_key="k"), user_id=2, tx=tx)
        merged = shop.sync.enqueue(shop.welcome.options(unique_key="k"), user_id=3, tx=tx)
        assert observer.column(LIVE) == []
        connection.commit()

    assert observer.column(LIVE) == [2]
    assert (merged.answer, merged.id) == (Answer.MERGED, kept.id)


def test_the_callers_own_error_passes_through(shop: Shop, livewell_dsn: str) -> None:
    """A transaction that has failed already says so in psycopg's words."""
    with psycopg.connect(livewell_dsn) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            shop.sync.enqueue(shop.welcome, user_id=1, tx=connection)


def test_an_async_connection_is_refused(shop: Shop) -> None:
    """It belongs to a loop."""

    class Async:
        async def execute(self, query: Any, params: Any = None, /) -> None:
            pytest.fail(f"it was used: {query} {params}")

    with pytest.raises(InvalidOption, match="async"):
        shop.sync.enqueue(shop.welcome, user_id=1, tx=Async())


# -- refusals and bounds -------------------------------------------------------------------------


async def test_a_thread_with_an_event_loop_is_refused(shop: Shop) -> None:
    """Before anything is opened, with what to use instead."""
    for use in (
        lambda: shop.sync.enqueue(shop.welcome, user_id=7),
        lambda: shop.sync.transaction().__enter__(),
        shop.sync.__enter__,
        shop.sync.admin.queues,
        shop.sync.open,
        shop.sync.close,
    ):
        with pytest.raises(LivewellError, match="use the async API"):
            use()
    assert portals() == 0


def test_a_call_from_inside_the_portal_is_refused(shop: Shop) -> None:
    """It would wait for itself."""

    async def inner() -> None:
        shop.sync.admin.queues()

    with pytest.raises(LivewellError, match="use the async API"):
        shop.sync.call(inner)


def test_a_wait_has_a_bound_and_cancels_what_it_waited_for(livewell_settings: Settings, observer: QueueSession) -> None:
    """A statement in a transaction ends on the server too, and the transaction with it.

    The bound is short for the one statement that must run into it: with half a second for every
    call, a busy machine made others run into it too.
    """
    shop = Shop(livewell_settings)
    bound_seconds = 300.0
    slow = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query "
        "LIKE 'SELECT pg_sleep%'"
    )
    with shop.sync.open(settings=livewell_settings.model_copy(update={"sync_wait_seconds": bound_seconds})):
        portal = shop.sync._opening.portal()
        assert portal.wait_seconds == bound_seconds
        with pytest.raises(DatabaseUnavailable, match="LIVEWELL_SYNC_WAIT_SECONDS"), shop.sync.transaction() as tx:
            shop.sync.enqueue(shop.welcome, user_id=7, tx=tx)
            portal.wait_seconds = 1.0
            tx.fetch("SELECT pg_sleep(600)")
        portal.wait_seconds = bound_seconds
        eventually(lambda: observer.value(slow) == 0, timeout=60)

        assert observer.column(LIVE) == []
        assert shop.sync.enqueue(shop.welcome, user_id=8).answer is Answer.INSERTED


# -- real processes ------------------------------------------------------------------------------

PREAMBLE = """
import asyncio, os, signal, sys, threading, time
from livewell import Livewell, LivewellError
app = Livewell()
@app.task(queue="mail")
def welcome(user_id: int) -> None:
    pass
def endless():
    try:
        app.sync.call(asyncio.sleep, 600)
    except LivewellError as error:
        print(error)
"""


def script(dsn: str, source: str) -> subprocess.CompletedProcess[str]:
    """A program of its own; one that hangs fails by the timeout."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", PREAMBLE + textwrap.dedent(source)],
        env={**os.environ, "DATABASE_URL": dsn},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # On a busy machine asyncio's debug mode remarks on callbacks that took long.
    done.stderr = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("Executing <"))
    return done


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "raise SystemExit(0)",
        "held = app.sync.transaction(); tx = held.__enter__(); app.sync.enqueue(welcome, user_id=8, tx=tx)",
        "threading.Thread(target=endless, daemon=True).start(); time.sleep(0.2)",
    ],
    ids=["plain", "exit", "open transaction", "call in a daemon thread"],
)
def test_a_program_that_never_closes_ends(livewell_dsn: str, observer: QueueSession, ending: str) -> None:
    """At once, silently, with what was committed and nothing else."""
    began = time.monotonic()

    done = script(livewell_dsn, f"app.sync.enqueue(welcome, user_id=7)\n{ending}")

    assert (done.returncode, done.stderr) == (0, "")
    assert observer.column(LIVE) == [7]
    assert time.monotonic() - began < 15


def test_a_forked_child_opens_its_own(livewell_dsn: str, observer: QueueSession) -> None:
    """Parent and children enqueue, before and after and at the same time.

    The parent's connections survive the children.
    """
    done = script(
        livewell_dsn,
        """
        app.sync.enqueue(welcome, user_id=1)
        children = []
        for n in (2, 3):
            child = os.fork()
            if child == 0:
                app.sync.enqueue(welcome, user_id=n)
                app.sync.close()
                sys.exit(0)
            children.append(child)
        app.sync.enqueue(welcome, user_id=4)
        codes = [os.waitpid(child, 0)[1] for child in children]
        app.sync.enqueue(welcome, user_id=5)
        print(codes)
        """,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 0]\n", "")
    assert sorted(observer.column(LIVE)) == [1, 2, 3, 4, 5]


def test_a_child_forked_while_threads_are_busy_does_not_hang(livewell_dsn: str, observer: QueueSession) -> None:
    """Whatever lock was held by a thread that the child does not have."""
    done = script(
        livewell_dsn,
        """
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                app.sync.admin.queues()
        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads: thread.start()
        for n in range(10):
            child = os.fork()
            if child == 0:
                app.sync.enqueue(welcome, user_id=n)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads: thread.join()
        """,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(observer.column(LIVE)) == list(range(10))


def test_a_transaction_does_not_follow_into_a_child(livewell_dsn: str, observer: QueueSession) -> None:
    """The child gets a clear error and leaves the parent's transaction alone.

    The parent commits.
    """
    done = script(
        livewell_dsn,
        """
        try:
            with app.sync.transaction() as tx:
                app.sync.enqueue(welcome, user_id=7, tx=tx)
                child = os.fork()
                if child:
                    assert os.waitpid(child, 0)[1] == 0
                else:
                    tx.execute("SELECT 1")
        except LivewellError as error:
            assert child == 0 and "before the fork" in str(error), error
            os._exit(0)
        """,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert observer.column(LIVE) == [7]


def test_a_child_of_an_async_program_opens_its_own(livewell_dsn: str, observer: QueueSession) -> None:
    """The app is open in a loop that runs only in the parent."""
    done = script(
        livewell_dsn,
        """
        def fork():
            child = os.fork()
            if child == 0:
                app.sync.enqueue(welcome, user_id=1)
                os._exit(0)
            return os.waitpid(child, 0)[1]
        async def main():
            async with app:
                assert await asyncio.to_thread(fork) == 0
                await welcome.enqueue(user_id=2)
        asyncio.run(main())
        """,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(observer.column(LIVE)) == [1, 2]


def test_an_interrupt_cancels_the_coroutine(livewell_dsn: str) -> None:
    """Ctrl-C reaches the thread at once, and the portal is free of what it waited for."""
    done = script(
        livewell_dsn,
        """
        ended = threading.Event()
        async def endless():
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                await asyncio.sleep(600)
            finally:
                ended.set()
        async def others():
            return [t for t in asyncio.all_tasks() if "endless" in repr(t)]
        app.sync.open()
        try:
            app.sync.call(endless)
        except KeyboardInterrupt:
            print("interrupted", ended.wait(5), app.sync.call(others))
        """,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted True []\n", "")


def test_an_interrupt_in_a_transaction_rolls_it_back(livewell_dsn: str, observer: QueueSession) -> None:
    """In the middle of a statement; the next transaction works."""
    done = script(
        livewell_dsn,
        """
        try:
            with app.sync.transaction() as tx:
                app.sync.enqueue(welcome, user_id=7, tx=tx)
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                tx.fetch("SELECT pg_sleep(600)")
        except KeyboardInterrupt:
            print("interrupted")
        with app.sync.transaction() as tx:
            app.sync.enqueue(welcome, user_id=8, tx=tx)
            print(tx.fetch("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%' AND state = 'active'"))
        """,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n[(0,)]\n", "")
    assert observer.column(LIVE) == [8]
