"""F-Q17: a job that kills its worker, and handlers that hang, among hundreds of innocents.

The killer: whoever runs it dies at once (kill -9 of itself). It alone must end in the dead letters,
after as many losses as its queue allows; the innocents that were in the same worker's hands run
again, each effect exactly once. Two workers, each replaced when it dies, as a supervisor would.

The hangs: an async handler that waits for ever is ended by its timeout; a sync one that is deaf is
given up by its timeout; one that blocks the event loop for ever can only be ended by the lease:
others take its job, it counts as lost like a killer, and the worker that hangs must end itself, or
one such job would stop them all.

The strange: errors without words and handlers that cancel themselves, one for every slot there is,
so that a slot lost to each would stop the fleet.

Can it fail? Yes: with claim_jobs replaced by one that hands out suspects like everything else,
innocents die with the killer and become dead letters; with settle_jobs replaced by one that never
counts a loss, the killer is never dead and it does not converge.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-Q17"
TITLE = "A poison job and hanging handlers among innocents"

CREW = 2
SLOTS = 8
LEASE_SECONDS = 1.0
BACKLOG = 30
FOR_EVER_SECONDS = 86_400.0
ROUND_SECONDS_MAX = 90.0
STRANGE = ("unspeakable", "cancel_itself")
RIGHT = {"killer": "lost", "hang_loop": "lost", "hang_async": "attempts", "hang_thread": "attempts"} | dict.fromkeys(
    STRANGE, "attempts"
)
_BAD = "SELECT EXISTS (SELECT FROM livewell.job WHERE kind IN ('killer', 'hang_loop'))"
_REASONS = "SELECT kind, string_agg(DISTINCT reason, ' ') FROM livewell.dead_job GROUP BY kind"


async def run(scale: Scale) -> Findings:
    """A killer and one hang of each sort per round, innocents all the time."""
    findings = Findings()
    losses, rounds = scale.pick(2, 5), scale.pick(1, 8)
    async with open_fleet(scale, lease_seconds=LEASE_SECONDS, lost_max=losses, worker_slots=SLOTS) as fleet:
        await fleet.workers(CREW)
        bad: list[int] = []
        replaced = 0
        for _ in range(rounds):
            await _innocents(fleet, 100)
            bad += await fleet.enqueue("killer")
            await _innocents(fleet, 50)
            bad += await fleet.enqueue("hang_loop", seconds=FOR_EVER_SECONDS)
            await _innocents(fleet, 50)
            bad += await fleet.enqueue("hang_async") + await fleet.enqueue("hang_thread", seconds=FOR_EVER_SECONDS)
            for kind in STRANGE:
                bad += await fleet.enqueue(kind, SLOTS * CREW)
            replaced += await _nurse(fleet, findings)
        codes = [worker.child.returncode for worker in fleet.children]
        starts = Counter(fleet.tasks[line.key] for line in fleet.events() if line.event == "start")
        findings.fired = codes.count(-9)
        # A loss without a run is right too: the one was in the buffer of a worker that the other
        # took down.
        for kind in ("killer", "hang_loop"):
            good = rounds <= starts[kind] <= losses * rounds
            findings.check(good, f"{kind} ran {starts[kind]} times; {rounds} to {losses * rounds} is right")
        findings.check(
            codes.count(-9) == starts["killer"], f"{codes.count(-9)} workers died of {starts['killer']} kills"
        )
        tally, reasons = fleet.audit(findings, dead=bad), dict(fleet.rows(_REASONS))
        findings.check(reasons == RIGHT, f"reasons of the dead letters: {reasons}; {RIGHT} is right")
        findings.figures = {
            "innocents": tally.jobs - len(bad),
            "innocents_dead_lettered": tally.dead - len(bad),
            "killers_and_hangs": len(bad),
            "losses_until_dead": losses,
            "workers_killed": codes.count(-9),
            "workers_that_ended_themselves": len(codes) - codes.count(-9) - codes.count(None),
            "workers_replaced": replaced,
            "effects_doubled": tally.doubled,
            "jobs_lost": tally.lost,
            "runs_repeated": tally.repeated,
        }
    return findings


async def _innocents(fleet: Fleet, n: int) -> None:
    await fleet.enqueue("effect", n * 2 // 3, seconds=0.03)
    await fleet.enqueue("plain", n // 3, seconds=0.03)


async def _nurse(fleet: Fleet, findings: Findings) -> int:
    """Replace who dies and keep innocents coming as long as there is a bad job, until all is done.

    Answers how many were replaced.
    """
    replaced, begun = 0, time.monotonic()
    while fleet.live() > 0 and time.monotonic() - begun < ROUND_SECONDS_MAX:
        if fleet.live() < BACKLOG and fleet.value(_BAD):
            await _innocents(fleet, BACKLOG)
        for _ in range(CREW - sum(worker.alive for worker in fleet.children)):
            fleet.start()
            replaced += 1
        await asyncio.sleep(0.05)
    await fleet.converge(findings, 0)
    return replaced
