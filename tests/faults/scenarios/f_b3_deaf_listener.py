"""F-B3: the LISTEN connection is killed, kept away, or turned deaf (half-open) while a job is enqueued.

A nudge is a hint and polling is the guarantee: the job starts within one poll interval all the
same. The listening address goes through a proxy of its own, so the rest of the worker feels
nothing.

Proven: with poll_seconds = 6 for the worker the rounds "away" and "deaf" exceeded the bound.
"""

from __future__ import annotations

import asyncio
import random
import time

from livewell.testing import percentile
from livewell.testing.proxy import TcpProxy
from tests.faults.database_support import OURS, at_port, check_alive, eventually, proxy_to, rounded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B3"
TITLE = "the listener is killed, kept away or deaf"

POLL_SECONDS = 1.0
BOUND_SECONDS = POLL_SECONDS * 1.1 + 1.5  # jitter of the poll, and a busy machine
LISTENERS = (
    f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND (query LIKE 'LISTEN%%' OR query = 'SELECT pg_notify($1, $2)')"
)
FAULTS = ("killed", "away", "deaf")


async def run(scale: Scale) -> Findings:
    findings, choose = Findings(), scale.random()
    async with open_fleet(scale, lease_seconds=4, poll_seconds=POLL_SECONDS) as fleet, proxy_to(fleet.dsn) as proxy:
        await fleet.workers(1, listen_url=at_port(fleet.dsn, proxy.port))
        healthy = [await _latency(fleet, findings, "healthy") for _ in range(5)]
        latencies: dict[str, list[float]] = {fault: [] for fault in FAULTS}
        for number in range(scale.pick(6, 150)):
            fault = FAULTS[number % len(FAULTS)]
            findings.fired += await _strike(fleet, proxy, fault, choose)
            latencies[fault].append(await _latency(fleet, findings, fault))
            proxy.heal()
            heard = await eventually(lambda: fleet.rows(LISTENERS), 10)
            findings.check(heard is not None, f"the listener did not come back after it was {fault}")
        took = await fleet.converge(findings, 15)
        tally = fleet.audit(findings)
        check_alive(fleet, findings)
        findings.figures |= {
            "latency_seconds_healthy_p50": rounded(percentile(healthy, 50)),
            **{f"latency_seconds_{fault}_max": rounded(max(seen)) for fault, seen in latencies.items()},
            "bound_seconds": BOUND_SECONDS,
            "lost": tally.lost,
            "converged_seconds": rounded(took),
        }
    return findings


async def _strike(fleet: Fleet, proxy: TcpProxy, fault: str, choose: random.Random) -> int:
    """Bring the fault about; answers how many listeners it hit."""
    await asyncio.sleep(choose.uniform(0, 0.3))
    if fault == "deaf":
        proxy.freeze()
        return len(fleet.rows(LISTENERS))
    if fault == "away":
        proxy.refuse()
    return sum(fleet.value("SELECT pg_terminate_backend(%s)", (pid,)) for (pid,) in fleet.rows(LISTENERS))


async def _latency(fleet: Fleet, findings: Findings, state: str) -> float:
    """Seconds from the acknowledged enqueue to the first line of its handler."""
    (key,) = await fleet.enqueue("effect", 1)
    enqueued = time.monotonic()
    if await fleet.until_event("start", [key], 3 * BOUND_SECONDS) is None:
        findings.check(False, f"listener {state}: job {key} did not start within {3 * BOUND_SECONDS:g} s")
        return 3 * BOUND_SECONDS
    latency = max(0.0, next(line.at for line in fleet.events() if line.event == "start" and line.key == key) - enqueued)
    findings.check(
        latency <= BOUND_SECONDS,
        f"listener {state}: a job waited {latency:.2f} s; the poll interval is {POLL_SECONDS} s",
    )
    return latency
