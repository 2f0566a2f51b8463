"""F-A5: SIGTERM under load, with 64 jobs in flight.

What ends within the grace is finished, the rest is handed back at once. Nothing waits for the
lease.

The lease is far longer than the whole scenario, so a job that was left behind would be seen. In
flight are async jobs that end in time, sync ones that end in time, async ones that never end, and
some of both sorts that outlast the grace and cannot be stopped; more jobs wait in the queue, some
of them claimed ahead.

Can it fail? Yes: with release_worker replaced by one that only answers 0, orphans are left; with a
worker that waits for its handlers, the stop takes too long.
"""

from __future__ import annotations

import re
import time

from livewell.testing.processes import ChildFailed
from tests.faults.fleet import Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-A5"
TITLE = "SIGTERM under load: finished or released, never expired"

SLOTS = 64
LEASE_SECONDS = 60.0
BEYOND_GRACE_SECONDS_MAX = (
    6.0  # 1 s for cancelled handlers to tidy up, 2 s for deaf ones, the last calls, and two busy cores
)


async def run(scale: Scale) -> Findings:
    """Stop a full worker politely, as often as the scale asks for.

    Its successor is the worker of the next round.
    """
    findings, rounds = Findings(), scale.pick(1, 10)
    grace = 1.0 if not scale.full else 5.0
    shutdown: list[float] = []
    again: list[float] = []
    in_time = released = expired = 0
    async with open_fleet(
        scale,
        lease_seconds=LEASE_SECONDS,
        heartbeat_seconds=1,
        worker_slots=SLOTS,
        grace_seconds=grace,
        pool_size_max=8,
    ) as fleet:
        worker, incarnation = fleet.start(), 0
        for _ in range(rounds):
            incarnation = await worker.started()
            fleet.shut_gate()
            flying = await _take_off(fleet, grace, findings)
            successor = fleet.start()  # it takes what is handed back, and what still waits
            asked = worker.terminate()
            code = await _end_of(worker, grace + 2 * BEYOND_GRACE_SECONDS_MAX)
            shutdown.append(time.monotonic() - asked)
            findings.check(code == 0, f"exit code {code} after SIGTERM, 0 is right: {worker.child.describe(5)}")
            expired += _left_behind(fleet, incarnation, findings)
            ended = {
                job for (job,) in fleet.rows("SELECT id FROM livewell.job_history WHERE worker = %s", (incarnation,))
            }
            handed_back = {key for key in flying if fleet.jobs[key] not in ended}
            in_time, released = in_time + len(flying) - len(handed_back), released + len(handed_back)
            fleet.open_gate()
            await fleet.converge(findings, 20)
            again += _waits(fleet, handed_back, worker.pid, asked + shutdown[-1])
            worker = successor
        tally = fleet.audit(findings)
        expired += sum(map(int, re.findall(r"lost_jobs=(\d+)", "\n".join(_lines(fleet)))))
        findings.check(expired == 0, f"{expired} jobs had to wait for a lease to run out")
        findings.fired = rounds
        findings.check(released > 0, "nothing was left to be released")
        findings.check(in_time > 0, "nothing ended within the grace")
        bound = grace + BEYOND_GRACE_SECONDS_MAX
        findings.check(max(shutdown) <= bound, f"stopping took {max(shutdown):.1f} s with a grace of {grace:g} s")
        findings.check(
            max(again, default=0) < LEASE_SECONDS / 2,
            f"a job handed back ran again only after {max(again, default=0):.1f} s",
        )
        findings.figures = {
            "in_flight": SLOTS,
            "rounds": rounds,
            "grace_seconds": grace,
            "shutdown_seconds_max": round(max(shutdown), 2),
            "finished_in_grace": in_time,
            "released": released,
            "expired": expired,
            "ran_again_seconds_after_exit_max": round(max(again, default=0), 2),
            "jobs_lost": tally.lost,
            "effects_doubled": tally.doubled,
        }
    return findings


async def _end_of(worker: Worker, seconds: float) -> int | None:
    """Its exit code; None when it had to be killed."""
    try:
        return await worker.ended(seconds)
    except ChildFailed:
        worker.kill()
        return None


async def _take_off(fleet: Fleet, grace: float, findings: Findings) -> list[int]:
    """Fill every slot, and the queue behind; answers the keys in flight."""
    keys = await fleet.enqueue("gated", 16)
    keys += await fleet.enqueue("stubborn", 4, seconds=grace + 8)
    keys += await fleet.enqueue("blocking", 8, seconds=grace + 8)
    keys += await fleet.enqueue("blocking", 8, seconds=grace * 0.8)
    keys += await fleet.enqueue("effect", 14, seconds=grace * 0.8)
    keys += await fleet.enqueue("plain", 14, seconds=grace * 0.8)
    await fleet.enqueue("effect", 40, seconds=0.01)
    findings.check(await fleet.until_event("start", keys) is not None, f"{SLOTS} jobs did not start within 20 s")
    return keys


def _left_behind(fleet: Fleet, incarnation: int, findings: Findings) -> int:
    """The process is gone: so must be its lease and its claims, at once.

    Answers how many claims are not.
    """
    orphans = int(fleet.value("SELECT count(*) FROM livewell.job WHERE worker = %s", (incarnation,)))
    findings.check(orphans == 0, f"{orphans} jobs still belong to the worker that stopped; they wait for its lease")
    leases = fleet.value("SELECT count(*) FROM livewell.worker WHERE id = %s", (incarnation,))
    findings.check(leases == 0, "the lease of the worker that stopped is still there")
    return orphans


def _lines(fleet: Fleet) -> list[str]:
    return [line for worker in fleet.children for line in worker.child.lines()]


def _waits(fleet: Fleet, keys: set[int], pid: int, ended: float) -> list[float]:
    """Seconds from the end of the process until each of these jobs began elsewhere.

    0 when it had begun before.
    """
    firsts = {line.key: line.at for line in reversed(fleet.events()) if line.event == "start" and line.pid != pid}
    return [max(0.0, firsts[key] - ended) for key in keys if key in firsts]
