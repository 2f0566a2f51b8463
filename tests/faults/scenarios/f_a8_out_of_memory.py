"""F-A8: a worker with a bounded address space runs a job that wants more.

Only that job fails; its neighbours in the same process do not notice.

Some hogs ask for everything at once. One glutton takes what there is piece by piece and sits on it:
meanwhile any allocation in the process may fail, the keeper's and ClaimAhead's too. Innocents may
then be run again, or the worker may give up and be replaced as a supervisor would; but none of them
is lost, doubled or dead-lettered.

Can it fail? Yes: without the limit no hog fails (fired = 0), and a hog that is killed instead of
failing counts as lost.
"""

from __future__ import annotations

import asyncio

from tests.faults.fleet import Fleet, open_fleet
from tests.faults.fleet_app import MEMORY
from tests.faults.scenario import Findings, Scale

CODE = "F-A8"
TITLE = "A job that wants too much memory"

# Beyond the imports. Threads reserve 8 MB of address space each for their stack; malloc would
# reserve 64 MB more for each, hence the second variable.
ROOM = {MEMORY: str(400 * 2**20), "MALLOC_ARENA_MAX": "2"}
HOG_MEGABYTES = 2000
RECOVERY_SECONDS_MAX = 90.0  # a glutton whose result cannot be sent is lost, up to five times, a lease and a start each
COMMAND = ("-c", "from tests.faults.fleet_app import work_within_memory; work_within_memory()")


async def run(scale: Scale) -> Findings:
    """Innocents, with hogs among them; then innocents with a glutton."""
    findings = Findings()
    async with open_fleet(scale, worker_slots=6) as fleet:
        [worker] = await fleet.workers(1, command=COMMAND, env=ROOM)
        hogs: list[int] = []
        for _ in range(scale.pick(3, 100)):
            await _innocents(fleet, 10)
            hogs += await fleet.enqueue("hog", 1, megabytes=HOG_MEGABYTES)
            await _innocents(fleet, 10)
        await fleet.converge(findings, 30)
        findings.check(worker.alive, f"the worker died of a job that wanted too much: {worker.child.describe()}")
        failed = {line.key for line in fleet.events() if line.event == "failed"}
        findings.check(failed == set(hogs), f"{len(failed)} jobs failed, {len(hogs)} hogs are right")
        tally = fleet.audit(findings, dead=hogs)
        findings.check(tally.repeated == 0, f"{tally.repeated} neighbours ran again")
        findings.fired = len(failed & set(hogs))
        gluttons, replaced = await _starve(fleet, findings, scale.pick(1, 10))
        starved = {line.key for line in fleet.events() if line.event == "starved"}
        after = fleet.audit(findings, dead=[*hogs, *gluttons])
        findings.figures = {
            "hogs": len(hogs),
            "innocents": after.jobs - len(hogs) - len(gluttons),
            "blast_radius": (len(failed) + tally.lost) / max(1, len(hogs)),
            "gluttons": len(gluttons),
            "gluttons_that_got_all_memory": len(starved),
            "workers_replaced_after_gluttons": replaced,
            "runs_repeated_after_gluttons": after.repeated,
            "jobs_lost": after.lost,
            "effects_doubled": after.doubled,
        }
    return findings


async def _innocents(fleet: Fleet, n: int) -> None:
    for task in ("effect", "plain"):
        await fleet.enqueue(task, n // 2, seconds=0.01)


async def _starve(fleet: Fleet, findings: Findings, n: int) -> tuple[list[int], int]:
    """Let gluttons starve the whole process for a moment, replacing it when it ends of that, as a supervisor would."""
    gluttons: list[int] = []
    replaced = 0
    for _ in range(n):
        gluttons += await fleet.enqueue("glutton", 1, seconds=1.5)
        await _innocents(fleet, 20)
        for _ in range(int(RECOVERY_SECONDS_MAX / 0.05)):
            if not fleet.children[-1].alive:
                replaced += 1
                await fleet.workers(1, command=COMMAND, env=ROOM)
            if fleet.live() == 0:
                break
            await asyncio.sleep(0.05)
        await fleet.converge(findings, 0)
    return gluttons, replaced
