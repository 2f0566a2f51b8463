"""F-B4: the road between one worker and the database goes half-open.

Nothing closes, nothing passes.

First briefly (thawed before the lease is over: what was held up arrives late), then until the other
worker has buried it and done its jobs, then healed: the worker must go on by itself. Handlers write
down when they ask the database and when they learn that they get no answer.

Proven: with call_timeout_seconds = pool_wait_seconds = 20 handlers still waited at the bound; with
the worker stopped (SIGSTOP) as its road was healed the last part did not converge.
"""

from __future__ import annotations

import asyncio
import random
import time

from livewell.testing.proxy import TcpProxy
from tests.faults.database_support import at_port, check_alive, check_torn, eventually, proxy_to, rounded
from tests.faults.fleet import Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B4"
TITLE = "half-open connection between a worker and the database"

LEASE_SECONDS = 1.5
CALL_SECONDS = 0.7
# Deadline of the call, wait for a connection of the pool, opening one; and a busy machine.
GIVE_UP_SECONDS_MAX = CALL_SECONDS + CALL_SECONDS + 3.0 + 1.5
TAKE_OVER_SECONDS_MAX = LEASE_SECONDS + CALL_SECONDS + 8.0
GO_ON_SECONDS_MAX = 15.0
OUTAGE_SECONDS = 40.0
BACK_SECONDS_MAX = 8.0
DEADLINES: dict[str, object] = {
    "lease_seconds": LEASE_SECONDS,
    "call_timeout_seconds": CALL_SECONDS,
    "pool_wait_seconds": CALL_SECONDS,
    "connect_timeout_seconds": 1,
    "idle_in_transaction_seconds": CALL_SECONDS,
}


async def run(scale: Scale) -> Findings:
    findings, choose = Findings(), scale.random()
    async with open_fleet(scale, **DEADLINES) as fleet, proxy_to(fleet.dsn) as proxy:
        (behind,) = await fleet.workers(1, database_url=at_port(fleet.dsn, proxy.port))
        give_up: list[float] = []
        take_over: list[float] = []
        go_on: list[float] = []
        for _ in range(scale.pick(1, 40)):
            await _hiccup(fleet, proxy, choose)
            other = fleet.start()
            await other.started()
            take_over.append(await _bury(fleet, proxy, behind, findings, give_up))
            await asyncio.to_thread(other.child.close)
            go_on.append(await _heal(fleet, proxy, findings))
        back = await _long_outage(fleet, proxy, findings) if scale.full else None
        tally = fleet.audit(findings)
        torn = check_torn(fleet, findings)
        check_alive(fleet, findings, behind)
        findings.fired = proxy.counts.fired.get("freeze", 0)
        findings.check(len(give_up) > 0, "no handler was waiting for the database when the road froze")
        findings.figures |= {
            "give_up_seconds_max": rounded(max(give_up, default=None)),
            "take_over_seconds_max": rounded(max(take_over)),
            "go_on_seconds_max": rounded(max(go_on)),
            "back_after_long_outage_seconds": rounded(back),
            "workers_stuck": sum(seconds > GO_ON_SECONDS_MAX for seconds in go_on),
            "torn": torn,
            "effects_doubled": tally.doubled,
            "lost": tally.lost,
            "runs_repeated": tally.repeated,
        }
    return findings


async def _hiccup(fleet: Fleet, proxy: TcpProxy, choose: random.Random) -> None:
    """Shorter than the lease: held-up commits arrive late, some of them after their caller has given up."""
    await fleet.enqueue("effect", 40, seconds=0.02)
    await asyncio.sleep(choose.uniform(0.02, 0.1))
    proxy.freeze()
    await asyncio.sleep(choose.uniform(0.2, LEASE_SECONDS * 0.7))
    proxy.thaw()


async def _bury(fleet: Fleet, proxy: TcpProxy, behind: Worker, findings: Findings, give_up: list[float]) -> float:
    """Freeze until the other worker has done everything.

    Nobody may keep the lease alive meanwhile.
    """
    keys = await fleet.enqueue("effect", 60, seconds=0.15)
    await fleet.until_event("start", keys[:8])
    proxy.freeze()
    frozen = time.monotonic()
    held = fleet.value("SELECT count(*) FROM livewell.job WHERE state = 'running'")
    findings.check(held > 0, "nobody held a job when the road froze")
    took = await fleet.converge(findings, TAKE_OVER_SECONDS_MAX)
    left = frozen + GIVE_UP_SECONDS_MAX - time.monotonic()
    told = await eventually(lambda: not _waits(fleet, behind, frozen)[1], left)
    waits, waiting = _waits(fleet, behind, frozen)
    findings.check(told is not None, f"{waiting} handlers got no answer within {GIVE_UP_SECONDS_MAX:g} s")
    give_up += waits
    return TAKE_OVER_SECONDS_MAX if took is None else took


def _waits(fleet: Fleet, behind: Worker, frozen: float) -> tuple[list[float], int]:
    """How long handlers of that worker waited for the database in vain; and how many still do."""
    asked: dict[int, float] = {}
    waits: list[float] = []
    for line in fleet.events():
        if line.pid != behind.pid:
            continue
        if line.event == "attempt":
            asked[line.key] = line.at
        elif line.key in asked and line.event in ("done", "failed", "fenced", "stopped"):
            begun = asked.pop(line.key)
            waits += [line.at - max(begun, frozen)] if line.at > frozen else []
    return waits, len(asked)


async def _heal(fleet: Fleet, proxy: TcpProxy, findings: Findings) -> float:
    """The other worker is gone; this one must do new work alone."""
    proxy.heal()
    await fleet.enqueue("effect", 20)
    took = await fleet.converge(findings, GO_ON_SECONDS_MAX)
    return 2 * GO_ON_SECONDS_MAX if took is None else took


async def _long_outage(fleet: Fleet, proxy: TcpProxy, findings: Findings) -> float:
    """Nobody answers for OUTAGE_SECONDS: however long it was, work goes on soon after.

    (A pool that doubled its pauses needed half as long again.)
    """
    proxy.refuse()
    proxy.cut()
    await asyncio.sleep(OUTAGE_SECONDS)
    took = await _heal(fleet, proxy, findings)
    findings.check(took <= BACK_SECONDS_MAX, f"work went on {took:.1f} s after an outage of {OUTAGE_SECONDS:g} s")
    return took
