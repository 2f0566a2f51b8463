"""F-B10: somebody forgets to end a transaction.

Ours: the session's own timeout ends it, and its owner gets a typed error. A stranger's, idle in
REPEATABLE READ on an unrelated table: vacuum can remove nothing, so the queue slows down, but not
below a floor, and is back soon after it ended.

Proven: with idle_in_transaction_seconds = 60 our own transaction was not ended in time; with a
feeder that stops half-way the floor was broken.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

import psycopg

from livewell.errors import DatabaseError
from tests.faults.database_support import check_alive, eventually, rounded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B10"
TITLE = "a forgotten transaction"

IDLE_SECONDS = 0.7
IDLE_SECONDS_MAX = IDLE_SECONDS + 2.0
WINDOW_SECONDS = 1.2
FLOOR = 0.2  # of the pace before; with the usual queue table it fell to 0.13 within a minute
BACKLOG = 2000
DEAD = """
SELECT n_dead_tup::float8 / greatest(n_live_tup, 1), n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = 'livewell' AND relname = 'job'
"""


async def run(scale: Scale) -> Findings:
    findings = Findings()
    settings = {"lease_seconds": 4, "worker_slots": 20, "idle_in_transaction_seconds": IDLE_SECONDS}
    async with open_fleet(scale, **settings) as fleet:
        ended = await _forget_ours(fleet, findings)
        (worker,) = await fleet.workers(1)
        feeding = asyncio.create_task(_feed(fleet))
        try:
            await asyncio.sleep(WINDOW_SECONDS + 0.5)
            begun = time.monotonic()
            dead = await _forget_strangers(fleet, findings, scale.pick(3, 60))
            over = time.monotonic()
            await asyncio.sleep(WINDOW_SECONDS)
        finally:
            feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await feeding
        took = await fleet.converge(findings, 30)
        tally = fleet.audit(findings)
        check_alive(fleet, findings, worker)
        done = [line.at for line in fleet.events() if line.event == "done"]
        before, start, end, after = (
            sum(instant <= at < instant + WINDOW_SECONDS for at in done) / WINDOW_SECONDS
            for instant in (begun - WINDOW_SECONDS, begun, over - WINDOW_SECONDS, over)
        )
        findings.check(before > 0, "no job was done before the transaction was forgotten")
        # A pace is judged only in the campaign; in `make test` it is a figure.
        findings.check(not scale.full or end >= FLOOR * before, f"{before:.0f} jobs a second became {end:.0f}")
        findings.figures |= {
            "ours_ended_after_seconds": rounded(ended),
            "tps_before": round(before),
            "tps_at_first": round(start),
            "tps_at_the_end": round(end),
            "tps_after": round(after),
            "forgotten_seconds": round(over - begun, 1),
            "dead_per_live": round(dead, 1),
            "lost": tally.lost,
            "effects_doubled": tally.doubled,
            "converged_seconds": rounded(took),
        }
    return findings


async def _forget_ours(fleet: Fleet, findings: Findings) -> float | None:
    """Open a transaction through the app and do nothing; answers when the server ended it."""
    ended: float | None = None
    try:
        async with fleet.app.transaction() as tx:
            ((pid,),) = await tx.fetch("SELECT pg_backend_pid()")
            ended = await eventually(
                lambda: not fleet.rows("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)), IDLE_SECONDS_MAX
            )
    except DatabaseError:
        findings.fired += 1
    else:
        findings.check(False, "a transaction that the server had ended was committed")
    findings.check(ended is not None, f"our forgotten transaction lived for more than {IDLE_SECONDS_MAX} s")
    return ended


async def _forget_strangers(fleet: Fleet, findings: Findings, seconds: float) -> float:
    """Hold a snapshot for so long; answers the dead rows per live one at its end."""
    async with await psycopg.AsyncConnection.connect(fleet.dsn, autocommit=True) as stranger:
        await stranger.execute("SET idle_in_transaction_session_timeout = 0")
        await stranger.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await stranger.execute("SELECT count(*) FROM effect")
        findings.fired += 1
        await asyncio.sleep(seconds)
        dead_per_live: float = fleet.rows(DEAD)[0][0]
        held = fleet.value(
            "SELECT age(backend_xmin) FROM pg_stat_activity WHERE pid = %s", (stranger.info.backend_pid,)
        )
        findings.check(held is not None and held > 20, f"the forgotten snapshot held nothing back (age {held})")
    return dead_per_live


async def _feed(fleet: Fleet) -> None:
    """Keep the queue from running empty.

    What is done is counted in the log: to count live rows is to read all the dead ones too.
    """
    given = done = 0
    fleet.log.path.touch()
    with fleet.log.path.open("rb") as log:
        while True:
            done += log.read().count(b"done ")
            if given - done < BACKLOG:
                await fleet.enqueue("plain", BACKLOG // 2)
                given += BACKLOG // 2
            await asyncio.sleep(0.005)
