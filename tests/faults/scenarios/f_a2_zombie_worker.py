"""F-A2: workers stand still past their lease (SIGSTOP), and then go on (SIGCONT).

Meanwhile another worker takes their jobs over and finishes them.

Each handler of a zombie is `stubborn`: it ignores that it was cancelled and tries to write its
effect all the same. It must be told `fenced` and its effect must not exist. A third of the victims
are `plain` jobs, whose result the worker itself hands in: their one end in the history must be the
new owner's.

Can it fail? Yes: with finish_jobs replaced by one that looks for the id alone and answers nothing
for a job that is gone, zombies write a second effect.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

from tests.faults.fleet import Event, Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-A2"
TITLE = "Zombies: frozen past their lease, replaced, then thawed"

CREW = 5  # one goes on, the others freeze together: each is a round
SLOTS = 3
HELD_SECONDS = 1.5  # how long a victim's first run takes; it is frozen meanwhile
TAKEOVER_SECONDS_MAX = 25.0


@dataclass(slots=True)
class Score:
    """What the zombies did, from the log."""

    rounds: int = 0
    attempted: int = 0
    fenced: int = 0
    wrong: int = 0  # effects or ends that are not the new owner's
    plain: int = 0


async def run(scale: Scale) -> Findings:
    """Freeze all but one, let that one finish everything, thaw, and see what the zombies achieve."""
    findings, chance, score = Findings(), scale.random(), Score()
    async with open_fleet(scale, lease_seconds=1, worker_slots=SLOTS) as fleet:
        crew = await fleet.workers(CREW)
        while score.rounds < scale.pick(8, 100) and not findings.violations:
            await _batch(fleet, crew, chance, findings, score)
        took = await fleet.converge(findings, 20)
        tally = fleet.audit(findings)
        findings.check(not fleet.value("SELECT count(*) FROM livewell.dead_job"), "a victim became a dead letter")
        findings.fired = score.attempted
        findings.check(score.attempted == score.fenced, f"{score.attempted} zombies tried, {score.fenced} were fenced")
        findings.figures = {
            "rounds": score.rounds,
            "zombies_attempted": score.attempted,
            "zombies_fenced": score.fenced,
            "plain_results_of_zombies": score.plain,
            "wrong_owners": score.wrong,
            "effects_doubled": tally.doubled,
            "jobs": tally.jobs,
            "jobs_lost": tally.lost,
            "runs_repeated": tally.repeated,
            "converged_seconds": round(took, 2) if took is not None else None,
        }
    return findings


async def _batch(fleet: Fleet, crew: list[Worker], chance: Random, findings: Findings, score: Score) -> None:
    """One survivor, all others zombies, in parallel."""
    if not await _all_busy(fleet, crew):
        findings.check(False, "not every worker had a job within 20 s")
    survivor = chance.choice(crew)
    zombies = [worker for worker in crew if worker is not survivor]
    for zombie in zombies:
        zombie.freeze()
    victims = _in_hand(fleet, {zombie.pid for zombie in zombies})
    done = "NOT EXISTS (SELECT FROM livewell.job)"
    if await fleet.until(done, TAKEOVER_SECONDS_MAX) is None:
        findings.check(
            False, f"the survivor did not take over within {TAKEOVER_SECONDS_MAX} s: {fleet.live()} jobs left"
        )
    await asyncio.sleep(chance.uniform(0, 0.2))
    chance.shuffle(zombies)
    for zombie in zombies:
        zombie.thaw()
    attempts = [(key, pid) for key, pid in victims if fleet.tasks[key] == "stubborn"]
    tried, fenced = await _outcomes(fleet, attempts)
    for zombie in zombies:
        findings.check(zombie.alive, f"a thawed worker ended itself: {zombie.child.describe(8)}")
    score.rounds += len(zombies)
    score.attempted += tried
    score.fenced += fenced
    score.plain += len(victims) - len(attempts)
    findings.check(tried == len(attempts), f"only {tried} of {len(attempts)} thawed handlers went on")
    score.wrong += _wrong(fleet, victims, survivor, findings)


async def _all_busy(fleet: Fleet, crew: list[Worker]) -> bool:
    """Enqueue until each worker has a stubborn job in hand."""
    for turn in range(1000):
        busy = {pid for key, pid in _in_hand(fleet, {worker.pid for worker in crew}) if fleet.tasks[key] == "stubborn"}
        if len(busy) == len(crew):
            return True
        if turn % 15 == 0:
            for _ in range(len(crew) - len(busy)):
                await fleet.enqueue("stubborn", SLOTS - 1, seconds=HELD_SECONDS)
                await fleet.enqueue("plain", 1, seconds=HELD_SECONDS)
        await asyncio.sleep(0.02)
    return False


async def _outcomes(fleet: Fleet, attempts: list[tuple[int, int]]) -> tuple[int, int]:
    """Wait for what the thawed handlers write down.

    How many tried to write, how many were told that they are fenced.
    """
    tried: set[tuple[int, int]] = set()
    ended: set[tuple[int, int]] = set()
    fenced: set[tuple[int, int]] = set()
    for _ in range(500):
        events = fleet.events()
        tried, ended, fenced = (
            _those(events, attempts, *names) for names in (("attempt",), ("fenced", "done", "failed"), ("fenced",))
        )
        if len(ended) == len(attempts):
            break
        await asyncio.sleep(0.02)
    return len(tried), len(fenced)


def _those(events: list[Event], among: list[tuple[int, int]], *names: str) -> set[tuple[int, int]]:
    return {(line.key, line.pid) for line in events if line.event in names} & set(among)


def _in_hand(fleet: Fleet, pids: set[int]) -> list[tuple[int, int]]:
    """(key, pid) of the runs that these processes have begun and not ended."""
    runs: set[tuple[int, int]] = set()
    for line in fleet.events():
        if line.pid in pids:
            (runs.add if line.event == "start" else runs.discard)((line.key, line.pid))
    return sorted(runs)


def _wrong(fleet: Fleet, victims: list[tuple[int, int]], survivor: Worker, findings: Findings) -> int:
    """Victims whose effect or end is not the survivor's."""
    wrong = 0
    for key, _ in victims:
        pids = [pid for (pid,) in fleet.rows("SELECT pid FROM public.effect WHERE key = %s", (key,))]
        good = pids == ([survivor.pid] if fleet.tasks[key] == "stubborn" else [])
        fences = [
            fence for (fence,) in fleet.rows("SELECT fence FROM livewell.job_history WHERE id = %s", (fleet.jobs[key],))
        ]
        good = good and len(fences) == 1
        findings.check(good, f"job of key {key}: effects by {pids}, {len(fences)} ends; the owner is {survivor.pid}")
        wrong += not good
    return wrong
