"""Migrators in many processes, and readers that must not feel them."""

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

import livewell
from livewell.db.migrate import Bundle, MigrationReport, apply, check, migrate
from livewell.db.migrate.state import ROLES
from tests.support.migrator import migrate_at
from tests.support.servers import cluster, new_database
from tests.support.warm import forks

PROCESSES = 10


def migrate_together(dsns: list[str]) -> list[MigrationReport]:
    """One real process per address; all begin at the same moment."""
    barrier = forks.Barrier(len(dsns))
    answers: Any = forks.Queue()
    processes = [forks.Process(target=migrate_at, args=(dsn, barrier, answers)) for dsn in dsns]
    for process in processes:
        process.start()
    reports = [answers.get(timeout=600) for _ in processes]
    for process in processes:
        process.join(300)
    failures = [report for report in reports if isinstance(report, str)]
    assert failures == []
    return reports


def test_ten_processes_start_on_one_empty_database(fresh_dsn: str) -> None:
    """All succeed, exactly one applied."""
    reports = migrate_together([fresh_dsn] * PROCESSES)

    assert [report.changed for report in reports].count(True) == 1
    assert check(fresh_dsn) == []


@pytest.fixture
def bare() -> Iterator[str]:
    """A server that has never seen our roles."""
    with cluster() as dsn:
        yield dsn


def test_ten_databases_of_one_new_cluster_are_migrated_at_once(bare: str) -> None:
    """All succeed, and every database has the grants of the roles they share."""
    with ExitStack() as stack:
        dsns = [stack.enter_context(new_database(bare)) for _ in range(PROCESSES)]

        reports = migrate_together(dsns)

        assert all(report.changed for report in reports)
        assert [check(dsn) for dsn in dsns] == [[]] * PROCESSES


def test_sessions_that_make_the_roles_at_once_do_not_collide(bare: str) -> None:
    """Roles belong to the cluster, and no advisory lock reaches across its databases.

    (Proven without the retries: 23505 on the settings.)
    """
    sessions = 8
    settings_each = 3  # two timeouts and jit
    barrier = threading.Barrier(sessions)

    def make_roles() -> None:
        with apply.connect(bare) as connection:
            barrier.wait(30)
            apply._retry(connection, lambda: apply._make_roles(connection), time.monotonic() + 60)

    for forget in ("DROP ROLE {}", "ALTER ROLE {} RESET ALL", "ALTER ROLE {} RESET statement_timeout") * 2:
        with ThreadPoolExecutor(sessions) as pool:
            for made in [pool.submit(make_roles) for _ in range(sessions)]:
                made.result(90)
        with psycopg.connect(bare) as connection:
            settings = (
                "SELECT count(*), min(cardinality(setconfig)) FROM pg_db_role_setting WHERE setrole = ANY "
                "(%s::regrole[])"
            )
            assert connection.execute(settings, (list(ROLES),)).fetchall() == [(len(ROLES), settings_each)]
            for role in ROLES:
                connection.execute(forget.format(role))


def test_nobody_waits_behind_a_migration_that_waits(fresh_dsn: str, tmp_path: Path) -> None:
    """Contract 16.

    A reader holds the table, the migration wants it alone: it steps back after 100 ms each time,
    and succeeds when the reader is done.

    Proven by raising lock_timeout to 5 s: the longest statement then took 5 s.
    """
    migrate(fresh_dsn)
    shutil.copytree(
        Path(livewell.__file__).parent, tmp_path / "package", ignore=shutil.ignore_patterns("*.py", "__pycache__")
    )
    alter = "ALTER TABLE livewell.warning ADD COLUMN extra bigint;"
    folder = tmp_path / "package" / "db" / "sql"
    name = f"{len(list(folder.glob('[0-9]*.sql'))) + 1:03d}_alter.sql"
    (folder / name).write_text(alter)
    bundle = Bundle.load(tmp_path / "package")
    waits: list[float] = []
    done = threading.Event()

    def probe() -> None:
        with psycopg.connect(fresh_dsn, autocommit=True) as connection:
            while not done.is_set():
                begun = time.monotonic()
                connection.execute("SELECT count(*) FROM livewell.warning")
                waits.append(time.monotonic() - begun)
                time.sleep(0.002)

    with psycopg.connect(fresh_dsn) as reader, ThreadPoolExecutor(2) as pool:
        reader.execute("SELECT count(*) FROM livewell.warning")
        probing = pool.submit(probe)
        migrating = pool.submit(migrate, fresh_dsn, bundle=bundle)
        for _ in range(3):  # it came, stepped back, came again
            until(reader, waiting=True)
            until(reader, waiting=False)
        reader.rollback()
        report = migrating.result(30)
        done.set()
        probing.result(30)

    assert report.applied[0] == f"db/{name}"
    assert report.attempts > 3
    assert max(waits) > 0.05, "the migration never stood in the way, so this proved nothing"
    assert max(waits) < 4, "100 ms, and room for a busy machine; with 5 s it would be more"


def until(connection: psycopg.Connection[Any], *, waiting: bool) -> None:
    """Watch until someone waits for a table alone, or no longer does."""
    query = (
        "SELECT count(*) > 0 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation' AND NOT granted"
    )
    deadline = time.monotonic() + 60
    while connection.execute(query).fetchone() != (waiting,):
        assert time.monotonic() < deadline, f"nobody is waiting: {not waiting}"
        time.sleep(0.005)
