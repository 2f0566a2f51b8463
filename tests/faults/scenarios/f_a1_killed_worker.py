"""F-A1: a worker is killed with SIGKILL at a random moment, again and again, while the queue is under load.

Nothing is lost, no effect is doubled, and what it held runs again elsewhere after about a lease. A
job that wrote its effect in job.transaction() may run twice but acts once; that its runs repeat
shows that the kills hit something.

Can it fail? Yes: with finish_jobs replaced by one that now and then forgets to end the job, effects
double; with recover_jobs replaced by one that does nothing, it does not converge.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from livewell.testing.history import percentile
from tests.faults.fleet import Event, Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-A1"
TITLE = "Workers are killed at random moments under load"

CREW = 3
LEASE_SECONDS = 1.0
# A lease runs out, a steady survivor buries, and what was lost runs alone, one after another, on a
# worker that drained. On two busy cores.
RECLAIM_SECONDS_MAX = 15.0
BACKLOG = 60
LOST_MAX = 5


async def run(scale: Scale) -> Findings:
    """Keep a crew at work under load and kill one of them until enough have died."""
    findings, chance = Findings(), scale.random()
    async with open_fleet(scale, lease_seconds=LEASE_SECONDS, worker_slots=4) as fleet:
        await fleet.workers(CREW)
        enough = asyncio.Event()
        feeding = asyncio.create_task(_feed(fleet, random.Random(chance.random()), enough))
        try:
            kills = await _storm(fleet, chance, scale.pick(5, 500))
        finally:
            enough.set()  # not cancel(): an enqueue that was cancelled may have happened
            await feeding
        took = await fleet.converge(findings, 30)
        unlucky = _unlucky(fleet, kills)
        tally = fleet.audit(findings, dead=unlucky)
        for letter in fleet.rows("SELECT id, reason, lost, attempt, error FROM livewell.dead_job"):
            key = next(key for key, job in fleet.jobs.items() if job == letter[0])
            runs = [(line.event, line.pid) for line in fleet.events() if line.key == key]
            findings.check(
                key in unlucky, f"dead letter {letter}, its runs: {runs}, killed: {[pid for pid, _ in kills]}"
            )
        cut_off, reclaims = _reclaims(fleet, kills)
        findings.fired = len(kills)
        findings.check(cut_off > 0, "no kill hit a worker with a job in hand")
        slow = [round(seconds, 1) for seconds in reclaims if seconds > RECLAIM_SECONDS_MAX]
        findings.check(not slow, f"claimed again only after {slow} s; at most {RECLAIM_SECONDS_MAX} s")
        findings.figures = {
            "kills": len(kills),
            "jobs": tally.jobs,
            "jobs_lost": tally.lost,
            "effects_doubled": tally.doubled,
            "runs_cut_off": cut_off,
            "killed_five_times": len(unlucky),
            "leases_lost_alive": fleet.value(
                "SELECT coalesce(sum(n), 0)::integer FROM livewell.warning WHERE what = 'lease lost'"
            ),
            "runs_repeated": tally.repeated,
            "lease_seconds": LEASE_SECONDS,
            "reclaim_seconds": {f"p{p}": round(percentile(reclaims, p), 2) for p in (50, 95, 100)}
            if reclaims
            else None,
            "converged_seconds": round(took, 2) if took is not None else None,
        }
    return findings


async def _feed(fleet: Fleet, chance: random.Random, enough: asyncio.Event) -> None:
    """Keep a backlog: jobs of all kinds, of up to 60 ms."""
    while not enough.is_set():
        if fleet.live() < BACKLOG:
            for task in ("effect", "effect", "plain", "blocking"):
                await fleet.enqueue(task, 10, seconds=round(chance.uniform(0, 0.06), 3))
        await asyncio.sleep(0.02)


async def _storm(fleet: Fleet, chance: random.Random, wanted: int) -> list[tuple[int, float]]:
    """Kill, replace, and go on once two are at work; answers (pid, instant) of each kill."""
    kills: list[tuple[int, float]] = []
    crew = list(fleet.children)
    starting: list[Worker] = []
    while len(kills) < wanted:
        await asyncio.sleep(chance.uniform(0.05, 0.4))
        for worker in [new for new in starting if _has_started(new)]:
            starting.remove(worker)
            crew.append(worker)
        if len(crew) < 2:
            continue
        victim = crew.pop(chance.randrange(len(crew)))
        kills.append((victim.pid, victim.kill()))
        await victim.ended()
        victim.child.close()
        if len(kills) + len(crew) + len(starting) < wanted + 2:
            starting.append(fleet.start())
    for worker in starting:
        await worker.started()
    return kills


def _has_started(worker: Worker) -> bool:
    if not worker.alive:
        raise AssertionError(worker.child.describe())
    return any("worker started" in line for line in worker.child.lines())


def _unlucky(fleet: Fleet, kills: list[tuple[int, float]]) -> list[int]:
    """Dead letters that are right: their workers really were killed over them, five times.

    The first may have been before they started.
    """
    killed = {pid for pid, _ in kills}
    started = Counter(line.key for line in fleet.events() if line.event == "start" and line.pid in killed)
    dead = {job for (job,) in fleet.rows("SELECT id FROM livewell.dead_job WHERE reason = 'lost'")}
    return [key for key, job in fleet.jobs.items() if job in dead and started[key] >= LOST_MAX - 1]


def _reclaims(fleet: Fleet, kills: list[tuple[int, float]]) -> tuple[int, list[float]]:
    """Return how many runs the kills cut off, and how soon those jobs ran again, in seconds.

    A job does not run again if it had already acted.
    """
    died = dict(kills)
    events = fleet.events()
    in_hand: dict[tuple[int, int], Event] = {}
    for line in events:
        if line.event == "start":
            in_hand[line.key, line.pid] = line
        elif line.event in ("done", "failed", "fenced", "stopped"):
            in_hand.pop((line.key, line.pid), None)
    cut_off = [(key, died[pid]) for key, pid in in_hand if pid in died]
    starts: dict[int, list[float]] = {}
    for line in events:
        if line.event == "start":
            starts.setdefault(line.key, []).append(line.at)
    again = [(min((at for at in starts[key] if at > instant), default=None), instant) for key, instant in cut_off]
    return len(cut_off), [at - instant for at, instant in again if at is not None]
