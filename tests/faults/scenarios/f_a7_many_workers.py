"""F-A7: many workers start at once on a full queue.

Nobody runs a job that another runs, and connections stay within the bound that the settings
promise.

The lease is long, so nobody is buried for being slow: two runs of one job at the same time would be
a claim given out twice.

Can it fail? Yes: with claim_jobs replaced by one that hands out jobs that already run (and
job_transition disabled), runs overlap.
"""

from __future__ import annotations

import asyncio
import time

from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-A7"
TITLE = "Many workers start at once"

POOL_SIZE = 1
# Connections of a worker outside its pool: claims ahead, claims of limited queues, upkeep, keeper,
# listener, nudger, scheduler, due check. While it starts, one more looks at the server, or is closed
# and not yet gone.
LINKS = 8
_CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'livewell'"
)


async def run(scale: Scale) -> Findings:
    """Start them all in the same moment, watch the connections, and let them work the queue empty."""
    findings = Findings()
    n, jobs = scale.pick(8, 50), scale.pick(600, 10_000)
    async with open_fleet(
        scale, lease_seconds=30, heartbeat_seconds=1, worker_slots=4, pool_size_max=POOL_SIZE, pool_wait_seconds=30
    ) as fleet:
        for task in ("effect", "plain", "blocking"):
            await fleet.enqueue(task, jobs // 3, seconds=0.005)
        ours = int(fleet.value(_CONNECTIONS))  # of the app that enqueued
        starting: list[int] = []
        working: list[int] = []
        watching = asyncio.create_task(_watch(fleet, starting))
        begun = time.monotonic()
        crew = await fleet.workers(n)
        started = time.monotonic() - begun
        await _end(watching)
        watching = asyncio.create_task(_watch(fleet, working))
        # They are all here: now there is something for each of them.
        for task in ("effect", "plain", "blocking"):
            await fleet.enqueue(task, jobs // 3, seconds=0.005)
        took = await fleet.converge(findings, 60 + jobs / 50)
        await _end(watching)
        tally, overlaps = fleet.audit(findings), fleet.overlaps()
        bound = n * (POOL_SIZE + LINKS)
        busy = {line.pid for line in fleet.events()}
        findings.fired = len(busy)
        findings.check(not overlaps, f"{len(overlaps)} jobs ran in two workers at once, the first: {overlaps[:3]}")
        findings.check(tally.repeated == 0, f"{tally.repeated} runs were repeated, though nobody died")
        most, most_starting = max(working) - ours, max(starting) - ours
        findings.check(most <= bound, f"{most} connections, {bound} is the bound for {n} workers")
        findings.check(
            most_starting <= bound + n,
            f"{most_starting} connections while starting, {bound + n} is the bound for {n} workers",
        )
        dead = [worker.child.describe(5) for worker in crew if not worker.alive]
        findings.check(not dead, f"{len(dead)} workers ended: {dead[:1]}")
        findings.figures = {
            "workers": n,
            "workers_that_ran_jobs": len(busy),
            "all_started_seconds": round(started, 1),
            "jobs": tally.jobs,
            "live_double_claims": len(overlaps),
            "jobs_lost": tally.lost,
            "effects_doubled": tally.doubled,
            "connections_peak": most,
            "connections_peak_while_starting": most_starting,
            "connections_bound": bound,
            "converged_seconds": round(took, 2) if took is not None else None,
        }
    return findings


async def _end(watching: asyncio.Task[None]) -> None:
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def _watch(fleet: Fleet, seen: list[int]) -> None:
    while True:
        seen.append(int(fleet.value(_CONNECTIONS)))
        await asyncio.sleep(0.02)
