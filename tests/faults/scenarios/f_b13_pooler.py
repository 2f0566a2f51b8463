"""F-B13: PgBouncer in transaction mode stands before the database.

`database_url` may be the pooler: enqueues and workers work through it, with a direct `listen_url`
nudges too. A pooled `listen_url` would hear nothing, silently: it is refused at start, also while
the pooler is busy with others, in words that name the setting.

Proven: with the check taken out of the worker nothing was refused; while the check looked only at
the number of the backend, 11 of 15 passed it on a busy pooler.
"""

from __future__ import annotations

import asyncio
import time

import psycopg

from livewell.db.listen import require_direct
from livewell.errors import ConfigurationError
from livewell.testing.pooler import PgBouncer, find_pgbouncer
from livewell.testing.processes import ChildFailed
from tests.faults.database_support import Producer, check_alive, check_torn, rounded
from tests.faults.fleet import Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B13"
TITLE = "a transaction pooler before the database"

POLL_SECONDS = 4.0
NUDGED_SECONDS_MAX = 2.5  # less than the shortest poll interval: what started by then was nudged
CLEAR = ("LIVEWELL_LISTEN_URL", "transaction pooler", "direct address")


async def run(scale: Scale) -> Findings:
    if find_pgbouncer() is None:
        return Findings(skipped="there is no pgbouncer here; install it with: apt-get install -y pgbouncer")
    findings = Findings()
    async with open_fleet(scale, lease_seconds=4, poll_seconds=POLL_SECONDS) as fleet:
        pooler = await asyncio.to_thread(PgBouncer(fleet.dsn, pool_size=6).__enter__)
        try:
            await _through(pooler, scale, fleet, findings)
        finally:
            await asyncio.to_thread(pooler.process.close)
    return findings


async def _through(pooler: PgBouncer, scale: Scale, fleet: Fleet, findings: Findings) -> None:
    refused = [fleet.start(database_url=pooler.dsn), fleet.start(database_url=pooler.dsn, listen_url=pooler.dsn)]
    working = fleet.start(database_url=pooler.dsn, listen_url=fleet.dsn)
    await working.started()
    jobs = scale.pick(400, 20000)
    async with Producer(fleet, pooler.dsn, listen_url=fleet.dsn) as producer:
        await asyncio.sleep(0.5)
        nudged = await _nudge_latency(fleet, producer, jobs + 1)
        for first in range(1, jobs, 100):
            await producer.enqueue(list(range(first, first + 100)))
        asked, let_through = await _refused_while_busy(pooler.dsn, producer, scale.pick(15, 200))
        took = await fleet.converge(findings, scale.pick(20, 300))
    findings.check(not producer.errors, f"enqueues failed behind the pooler: {producer.errors}")
    findings.check(nudged <= NUDGED_SECONDS_MAX, f"a nudged job started only after {nudged:.2f} s")
    findings.check(let_through == 0, f"{let_through} of {asked} pooled listen addresses were accepted")
    for worker in refused:
        await _check_refused(worker, findings)
    check_alive(fleet, findings, working)
    tally = fleet.audit(findings)
    torn = check_torn(fleet, findings)
    transactions, clients, servers = _console(pooler)
    findings.fired = transactions
    findings.check(servers < clients, f"{clients} clients had {servers} server connections: nothing was pooled")
    findings.figures |= {
        "pooled_transactions": transactions,
        "clients": clients,
        "server_connections": servers,
        "pass_rate": round((tally.jobs - tally.lost - tally.doubled) / max(tally.jobs, 1), 4),
        "nudged_start_seconds": rounded(nudged),
        "pooled_listeners_refused": f"{asked - let_through + len(refused)}/{asked + len(refused)}",
        "torn": torn,
        "runs_repeated": tally.repeated,
        "converged_seconds": rounded(took),
    }


async def _nudge_latency(fleet: Fleet, producer: Producer, key: int) -> float:
    await producer.enqueue([key])
    enqueued = time.monotonic()
    await fleet.until_event("start", [key], POLL_SECONDS * 3)
    return next((line.at - enqueued for line in fleet.events() if line.key == key), POLL_SECONDS * 3)


async def _refused_while_busy(dsn: str, producer: Producer, times: int) -> tuple[int, int]:
    """Ask for a pooled listener while others use the pooler.

    Answers how often, and how often it was let through.
    """
    others = [asyncio.create_task(_use(producer)) for _ in range(6)]
    room = asyncio.Semaphore(20)

    async def is_let_through() -> bool:
        async with room:
            try:
                await require_direct(dsn, 5)
            except ConfigurationError:
                return False
            return True

    try:
        let_through = sum(await asyncio.gather(*(is_let_through() for _ in range(times))))
    finally:
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
    return times, let_through


async def _use(producer: Producer) -> None:
    while True:
        async with producer.app.transaction() as tx:
            await tx.fetch("SELECT 1")
            await asyncio.sleep(0.002)


async def _check_refused(worker: Worker, findings: Findings) -> None:
    """It ended by itself, as a wrong configuration, and said what to change."""
    try:
        code = await worker.ended(20)
    except ChildFailed:
        findings.check(False, f"a worker with a pooled listen_url was not refused: {worker.child.describe(5)}")
        return
    said = " ".join(worker.child.lines())
    findings.check(code == 2, f"a worker with a pooled listen_url ended with {code}, not 2: {said[-500:]}")
    missing = [word for word in CLEAR if word not in said]
    findings.check(not missing, f"the refusal does not say {missing}: {said[-500:]}")


def _console(pooler: PgBouncer) -> tuple[int, int, int]:
    """Transactions so far, clients now, server connections now: PgBouncer's own count."""
    with (
        psycopg.connect(pooler.admin_dsn, autocommit=True, prepare_threshold=None) as console,
        psycopg.ClientCursor(console) as cursor,  # the console speaks the simple protocol only
    ):
        cursor.execute("SHOW STATS_TOTALS")
        names = [column.name for column in cursor.description or []]
        transactions = sum(dict(zip(names, row, strict=True))["xact_count"] for row in cursor)
        cursor.execute("SHOW CLIENTS")
        clients = len(cursor.fetchall())
        cursor.execute("SHOW SERVERS")
        servers = len(cursor.fetchall())
    return int(transactions), clients, servers
