"""F-A3: the first thing a zombie does is a heartbeat.

It must not prolong anything of the new owner's, and it must learn that it was buried.

Both workers have one slot. A freezes with a job in hand, B takes it over. Then B is frozen too, so
nobody alive renews B's lease: any change of B's lease or of the job's row after A thaws is the
zombie's doing. A's slot is full, so it asks for nothing, and only its keeper can tell it that it
was buried.

Can it fail? Yes: with renew_worker replaced by one that renews younger workers too, the lease
moves; with one that always answers alive, A never learns.
"""

from __future__ import annotations

import asyncio
from typing import Any

from livewell.testing.processes import ChildFailed
from tests.faults.fleet import Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-A3"
TITLE = "A zombie's heartbeat does not touch the new owner's lease"

LEASE_SECONDS = 1.0

# xmin changes with every write, even with one that writes the same values. One statement, so one
# snapshot: read one after the other, the owner's own heartbeat could fall between them.
_JOB_AND_LEASE = (
    "SELECT j.id, j.fence, j.worker, j.deadline_at, j.state::text, j.xmin::text, w.*, w.xmin::text"
    " FROM livewell.job j LEFT JOIN livewell.worker w ON w.id = j.worker WHERE j.id = %s"
)


async def run(scale: Scale) -> Findings:
    """As many rounds as the scale asks for, the two workers in changing roles."""
    findings = Findings()
    rounds, extended, told = scale.pick(3, 40), 0, 0
    async with open_fleet(scale, lease_seconds=LEASE_SECONDS, worker_slots=1) as fleet:
        pair = await fleet.workers(2)
        for _ in range(rounds):
            changed, learnt = await _round(fleet, pair, findings)
            extended += changed
            told += learnt
            if findings.violations:
                break
        took = await fleet.converge(findings, 15)
        tally = fleet.audit(findings)
        findings.fired = rounds
        findings.figures = {
            "rounds": rounds,
            "leases_extended_by_non_owner": extended,
            "zombies_told_that_they_are_buried": told,
            "effects_doubled": tally.doubled,
            "jobs_lost": tally.lost,
            "converged_seconds": round(took, 2) if took is not None else None,
        }
    return findings


async def _round(fleet: Fleet, pair: list[Worker], findings: Findings) -> tuple[bool, bool]:
    """Freeze the holder, let the other take over, freeze that one, thaw the first.

    Answers whether anything changed, and whether it was told.
    """
    fleet.shut_gate()
    [key] = await fleet.enqueue("gated")
    findings.check(await fleet.until_event("start", [key]) is not None, "the job did not start within 20 s")
    zombie = next(worker for worker in pair if worker.pid == _runners(fleet, key)[-1])
    owner = next(worker for worker in pair if worker is not zombie)
    mark = zombie.child.mark()
    zombie.freeze()
    taken = await fleet.until(
        "count(*) = 1 FROM livewell.job WHERE id = %s AND state = 'running' AND lost = 1", 15, (fleet.jobs[key],)
    )
    findings.check(taken is not None, "nobody took over within 15 s")
    owner.freeze()
    before = await _settled(fleet, key)
    zombie.thaw()
    try:
        await zombie.said("lease lost", since=mark)
        told = True
    except ChildFailed:
        told = False
    after = _state(fleet, key)
    owner.thaw()
    findings.check(told, "the zombie was not told that it was buried")
    findings.check(before == after, f"the zombie changed the new owner's lease or job: {before} became {after}")
    fleet.open_gate()
    ended = await fleet.until("NOT EXISTS (SELECT FROM livewell.job)", 20)
    findings.check(ended is not None, "the job did not end within 20 s")
    return before != after, told


def _runners(fleet: Fleet, key: int) -> list[int]:
    return [line.pid for line in fleet.events() if line.key == key and line.event == "start"]


async def _settled(fleet: Fleet, key: int) -> list[tuple[Any, ...]]:
    """What the owner sent just before it was frozen, the server still carries out.

    Wait until nothing moves any more.
    """
    state: list[tuple[Any, ...]] = []
    for _ in range(30):
        earlier, state = state, _state(fleet, key)
        if state == earlier:
            break
        await asyncio.sleep(0.1)
    return state


def _state(fleet: Fleet, key: int) -> list[tuple[Any, ...]]:
    return fleet.rows(_JOB_AND_LEASE, (fleet.jobs[key],))
