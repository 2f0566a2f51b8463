"""F-B7: handlers hold every connection of their worker's pool.

Who asks for one more waits a bounded time and gets DatabaseUnavailable; heartbeats, claims and
finishes have connections of their own and go on.

Proven: with pool_wait_seconds = 5 for the worker the waits were too long; with a keeper that paused
for 1.2 s before every renewal heartbeats were missed.
"""

from __future__ import annotations

from livewell.testing import percentile
from tests.faults.database_support import SPECIAL, LeaseWatch, check_alive, check_torn, rounded
from tests.faults.fleet import Event, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B7"
TITLE = "handlers hold every connection of the pool"

POOL = 2
WAIT_SECONDS = 0.3
WAIT_SECONDS_MAX = WAIT_SECONDS + 1.0  # a busy machine
LEASE_SECONDS = 3.0
HEARTBEAT_SECONDS = 0.1


async def run(scale: Scale) -> Findings:
    findings, watch = Findings(), LeaseWatch()
    async with open_fleet(
        scale,
        lease_seconds=LEASE_SECONDS,
        heartbeat_seconds=HEARTBEAT_SECONDS,
        pool_size_max=POOL,
        pool_wait_seconds=WAIT_SECONDS,
        worker_slots=8,
    ) as fleet:
        await fleet.workers(1, command=SPECIAL)
        held = []
        for _ in range(scale.pick(1, 20)):
            held += await fleet.enqueue("hold", 6, seconds=1.0)
            await fleet.until_event("start", held[-6:])
            await fleet.enqueue("plain", 30)
            await watch.watch(fleet, 2.0)
        fleet.tasks.update(dict.fromkeys(held, "effect"))  # they write one each
        plain_done = sum(line.event == "done" and line.key not in held for line in fleet.events())
        took = await fleet.converge(findings, 30)
        tally = fleet.audit(findings)
        torn = check_torn(fleet, findings, ("hold",))
        check_alive(fleet, findings)
        waits, refused, other = _waits(fleet.events())
        findings.fired = refused
        gap_max = LEASE_SECONDS / 3
        findings.check(max(waits) <= WAIT_SECONDS_MAX, f"a handler waited {max(waits):.2f} s for a connection")
        findings.check(other == 0, f"{other} handlers ended without a connection and without DatabaseUnavailable")
        findings.check(len(watch.workers) == 1, f"the lease was lost: {len(watch.workers)} incarnations")
        findings.check(watch.gap_seconds_max < gap_max, f"no heartbeat for {watch.gap_seconds_max:.2f} s")
        findings.check(plain_done > 0, "nothing else was done while the pool was empty")
        findings.figures |= {
            "refused": refused,
            "wait_seconds_p99": rounded(percentile(waits, 99)),
            "missed_heartbeats": int(watch.gap_seconds_max // gap_max),
            "renewal_gap_seconds_max": rounded(watch.gap_seconds_max),
            "done_meanwhile": plain_done,
            "torn": torn,
            "lost": tally.lost,
            "runs_repeated": tally.repeated,
            "converged_seconds": rounded(took),
        }
    return findings


def _waits(events: list[Event]) -> tuple[list[float], int, int]:
    """How long each handler waited for a connection; how many got the typed refusal.

    How many ended some other way.
    """
    asked: dict[int, float] = {}
    waits: list[float] = []
    refused = other = 0
    for line in events:
        if line.event == "asked":
            asked[line.key] = line.at
        elif line.key in asked and line.event in ("got", "refused", "failed", "stopped", "fenced"):
            waits.append(line.at - asked.pop(line.key))
            refused += line.event == "refused"
            other += line.event not in ("got", "refused")
    return waits, refused, other
