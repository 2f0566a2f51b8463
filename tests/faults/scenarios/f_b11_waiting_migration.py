"""F-B11: a reader is in no hurry, and a migration, a new partition and the end of an old one want what it holds.

Whoever waits for a lock of ours is kept no longer than 100 ms: seen in pg_locks, and by probers
that time their own reads. When the reader leaves, all of it goes through.

Proven: with SET LOCAL lock_timeout = '10s' in the migration's SQL a reader waited 3.4 s, as long as
the other one stayed.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass, replace

import psycopg

from livewell.db.migrate import Bundle, migrate
from livewell.db.migrate.bundle import SqlFile
from livewell.errors import DatabaseError
from tests.faults.database_support import check_alive, rounded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B11"
TITLE = "a reader holds what a migration and the partitions want"

# 100 ms is the promise; the rest is for a machine with two busy cores. Without the promise it is as
# long as the reader stays.
WAIT_SECONDS_MAX = 1.0
READER_SECONDS = 3.0
MIGRATION = "ALTER TABLE livewell.job ADD COLUMN fault_probe integer;\nALTER TABLE livewell.job_history ADD COLUMN fault_probe integer;\n"
OLD_DAY = "job_history_20200101"
OLD = (
    f"""CREATE TABLE IF NOT EXISTS livewell.{OLD_DAY} PARTITION OF livewell.job_history
        FOR VALUES FROM ('2020-01-01Z') TO ('2020-01-02Z')""",
    f"ALTER TABLE IF EXISTS livewell.{OLD_DAY} OWNER TO livewell_owner",
)
WAITING = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart))::float8, 0) FROM pg_locks
WHERE NOT granted AND locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
READS = ("SELECT id FROM livewell.job LIMIT 1", "SELECT id FROM livewell.job_history LIMIT 1")


@dataclass(slots=True)
class Longest:
    """The longest waits that were seen."""

    lock_seconds: float = 0.0
    read_seconds: float = 0.0
    enqueue_seconds: float = 0.0
    reads: int = 0


async def run(scale: Scale) -> Findings:
    findings = Findings()
    longest = Longest()
    async with open_fleet(scale, lease_seconds=4) as fleet:
        await fleet.workers(1)
        for number in range(scale.pick(1, 12)):
            await _round(fleet, findings, longest, number)
        took = await fleet.converge(findings, 20)
        tally = fleet.audit(findings)
        check_alive(fleet, findings)
        findings.check(
            longest.lock_seconds <= WAIT_SECONDS_MAX, f"somebody waited {longest.lock_seconds:.2f} s for a lock of ours"
        )
        findings.check(longest.read_seconds <= WAIT_SECONDS_MAX * 1.5, f"a reader waited {longest.read_seconds:.2f} s")
        findings.check(longest.reads > 50, f"only {longest.reads} reads were timed: nobody watched")
        findings.figures |= {
            "stepped_back": findings.fired,
            "longest_lock_wait_seconds": rounded(longest.lock_seconds),
            "longest_read_seconds": rounded(longest.read_seconds),
            "longest_enqueue_seconds": rounded(longest.enqueue_seconds),
            "reads": longest.reads,
            "lost": tally.lost,
            "converged_seconds": rounded(took),
        }
    return findings


async def _round(fleet: Fleet, findings: Findings, longest: Longest, number: int) -> None:
    stop = asyncio.Event()
    reader = await psycopg.AsyncConnection.connect(fleet.dsn)
    watching = [
        asyncio.create_task(_watch_locks(fleet.dsn, longest, stop)),
        *(asyncio.create_task(_read(fleet.dsn, query, longest, stop)) for query in READS),
        asyncio.create_task(_enqueue(fleet, longest, stop)),
    ]
    try:
        await _hold_old_day(fleet, reader)
        migrating = asyncio.create_task(asyncio.to_thread(migrate, fleet.dsn, bundle=_bundle(number), wait_seconds=30))
        end = time.monotonic() + READER_SECONDS
        stepped_back = 0
        while time.monotonic() < end:
            stepped_back += await _drop_old_day(fleet)
            await _make_days(fleet, findings)
            await asyncio.sleep(0.1)
        findings.check(not migrating.done(), "the migration did not need what the reader held")
        await reader.rollback()
        report = await migrating
        findings.fired += stepped_back + report.attempts - 1
        findings.check(stepped_back > 0, "dropping an old day did not need what the reader held")
        await _until_dropped(fleet, findings)
    finally:
        stop.set()
        await reader.close()
        await asyncio.gather(*watching)


async def _hold_old_day(fleet: Fleet, reader: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    """Read both tables, an old day among them.

    A worker's own upkeep may drop it before the reader is there.
    """
    for _ in range(50):
        for statement in OLD:
            fleet.rows(statement)
        for query in READS:
            await reader.execute(query.encode())  # of the parent: its lock is on every partition
        cursor = await reader.execute(f"SELECT to_regclass('livewell.{OLD_DAY}') IS NOT NULL".encode())
        if await cursor.fetchone() == (True,):
            return
        await reader.rollback()
    raise AssertionError("the old day was dropped fifty times before it could be read")


def _bundle(number: int) -> Bundle:
    """This release with further migrations of the queue, each alone with both tables."""
    bundle = Bundle.load()
    packages = []
    for package in bundle.packages:
        first = len(package.numbered) + 1
        more = tuple(_file(first + n, MIGRATION.replace("fault_probe", f"fault_probe_{n}")) for n in range(number + 1))
        packages.append(replace(package, numbered=package.numbered + more) if package.name == "queue" else package)
    return replace(bundle, packages=tuple(packages))


def _file(number: int, sql: str) -> SqlFile:
    label = f"queue/{number:03d}_fault.sql"
    return SqlFile("queue", "fault", number, label, sql, hashlib.sha256(sql.encode()).hexdigest(), ())


async def _drop_old_day(fleet: Fleet) -> bool:
    """Try once; True when it stepped back."""
    try:
        await fleet.app.database.call("SELECT livewell.drop_history_day(7)")
    except DatabaseError as error:
        if error.sqlstate != "55P03":
            raise
        return True
    return False


async def _make_days(fleet: Fleet, findings: Findings) -> None:
    """Always a day more than there are; a reader is no obstacle."""
    ahead = fleet.value("SELECT count(*)::integer FROM pg_inherits WHERE inhparent = 'livewell.job_history'::regclass")
    if ahead < 55:
        try:
            await fleet.app.database.call("SELECT livewell.ensure_history_days(%s)", (ahead,))
        except DatabaseError as error:
            findings.check(error.sqlstate == "55P03", f"making a day failed: {error}")


async def _until_dropped(fleet: Fleet, findings: Findings) -> None:
    for _ in range(100):
        if not await _drop_old_day(fleet):
            return
        await asyncio.sleep(0.05)
    findings.check(False, "the old day could not be dropped although its reader had left")


async def _watch_locks(dsn: str, longest: Longest, stop: asyncio.Event) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as watcher:
        while not stop.is_set():
            row = await (await watcher.execute(WAITING)).fetchone()
            longest.lock_seconds = max(longest.lock_seconds, row[0] if row else 0.0)
            await asyncio.sleep(0.005)


async def _read(dsn: str, query: str, longest: Longest, stop: asyncio.Event) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as prober:
        while not stop.is_set():
            begun = time.monotonic()
            await prober.execute(query.encode())
            longest.read_seconds = max(longest.read_seconds, time.monotonic() - begun)
            longest.reads += 1
            await asyncio.sleep(0.01)


async def _enqueue(fleet: Fleet, longest: Longest, stop: asyncio.Event) -> None:
    while not stop.is_set():
        begun = time.monotonic()
        await fleet.enqueue("effect", 2)
        longest.enqueue_seconds = max(longest.enqueue_seconds, time.monotonic() - begun)
        await asyncio.sleep(0.03)
