"""F-B2: backends of ours are terminated at random moments, most of them inside a transaction.

The effect and the end of its job carry the same fence: after the storm each fence stands on both
sides or on neither.

Proven: with a handler that commits its effect in a transaction of its own, before
job.transaction(), effects were doubled and stood without an end.
"""

from __future__ import annotations

import asyncio
import random

from tests.faults.database_support import OURS, Producer, check_alive, check_torn, rounded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B2"
TITLE = "backends are killed at random moments"

BACKENDS = f"SELECT pid, state IN ('active', 'idle in transaction') FROM pg_stat_activity WHERE {OURS} ORDER BY pid"
BUSY_OF_TEN = 8  # how many of ten kills go for a backend that is in the middle of something, if there is one


async def run(scale: Scale) -> Findings:
    findings, choose = Findings(), scale.random()
    async with open_fleet(scale, lease_seconds=2, worker_slots=8) as fleet, Producer(fleet, fleet.dsn) as producer:
        workers = await fleet.workers(2)
        busy, next_key = 0, 1
        for _ in range(scale.pick(30, 1000)):
            if fleet.live() < 300:
                await producer.enqueue(list(range(next_key, next_key + 300)))
                next_key += 300
            was_busy = _kill_one(fleet, choose)
            findings.fired += was_busy is not None
            busy += was_busy is True
            await asyncio.sleep(choose.uniform(0, 0.1))
        took = await fleet.converge(findings, 30)
        producer.adopt_unknown()
        torn = check_torn(fleet, findings)
        tally = fleet.audit(findings)
        check_alive(fleet, findings, *workers)
        findings.check(busy > 0, "no backend was killed in the middle of anything")
        findings.figures |= {
            "killed": findings.fired,
            "killed_in_transaction": busy,
            "jobs": tally.jobs,
            "torn_commits": torn,
            "effects_doubled": tally.doubled,
            "lost": tally.lost,
            "runs_repeated": tally.repeated,
            "converged_seconds": rounded(took),
        }
    return findings


def _kill_one(fleet: Fleet, choose: random.Random) -> bool | None:
    """Terminate a backend of ours.

    Answers whether it was in a transaction, None when there was none to kill.
    """
    found: list[tuple[int, bool]] = [(pid, busy) for pid, busy in fleet.rows(BACKENDS)]
    busy = [one for one in found if one[1]]
    candidates = busy if busy and choose.randrange(10) < BUSY_OF_TEN else found
    if not candidates:
        return None
    pid, was_busy = choose.choice(candidates)
    return was_busy if fleet.value("SELECT pg_terminate_backend(%s)", (pid,)) else None
