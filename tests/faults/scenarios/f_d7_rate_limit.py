"""F-D7: many workers race for a rate limit, and one of them is killed every few seconds.

The handlers connect, check their permit on the connected socket and write; the upstream stamps each
request on arrival and writes it down. Judged by that log alone: never more calls than the limit in
any window, wherever it starts; and the limit is used. More jobs wait in the lane of people than the
limit allows, all the time. The use is measured after the first window (which begins with a burst)
and before the last few calls (which the kills have delayed). It cannot be more than W / (W + round
trip).

A call counts until its answer is booked, so it does not matter how long its way to the upstream's
stamp was; only what a killed worker had under way must arrive within permit and deadline. Both
forms are judged by the upstream's own stamps, also beside other tests on two cores; the longest way
is in the message.

Can it fail? Yes: paced alone, without counting calls, 101 calls came within a window in the short
form; counted from their grants over W alone, 101 too; over W + d, 102 in one of 20 full runs. With
permits counted from before the wait for the lock (as they once were) the use fell to 77 %.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from livewell.testing import Call, HistoryChecker
from livewell.testing.call_windows import busiest_window
from tests.faults.fleet import Worker
from tests.faults.limited_fleet import LimitedFleet, open_limited_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-D7"
TITLE = "Workers race for a rate limit and are killed"

LIMIT = 100
WINDOW_SECONDS = 3.0
PERMIT_SECONDS = WINDOW_SECONDS / 60
DEADLINE_SECONDS = 1.0  # what the killed had under way counts for so long, and a window more
USE_MIN = {True: 0.94, False: 0.5}  # by scale.full: beside other tests, on two cores, the short form is about the limit
TAIL = 50  # calls at the end of a run that say nothing about use: what the killed held comes last
LEASE_SECONDS = 2.0
KILL_SECONDS = (2.0, 4.0)  # between two kills


@dataclass(frozen=True, slots=True)
class Run:
    """What the upstream saw of one run."""

    seed: int
    kills: int
    calls: int
    worst_window: int
    use: float
    late: int  # permits that came too late: burnt, nobody was called
    lag_seconds_max: float  # from the check of a permit to the upstream's stamp


async def run(scale: Scale) -> Findings:
    """One fleet; run after run, each with a seed of its own."""
    findings, chance = Findings(), scale.random()
    crew_size, windows = scale.pick(5, 20), scale.pick(2, 6)
    limits = {
        "rate": f"{LIMIT}/{WINDOW_SECONDS:g}s",
        "permit": PERMIT_SECONDS,
        "deadline": DEADLINE_SECONDS,
        "reserve": 0,
    }
    async with open_limited_fleet(
        scale,
        {"rate": limits},
        lease_seconds=LEASE_SECONDS,
        heartbeat_seconds=0.3,
        maintain_seconds=0.5,
        poll_seconds=0.5,
        worker_slots=4,
    ) as limited:
        crew = await limited.workers(crew_size)
        runs = []
        for _ in range(scale.pick(1, 20)):
            runs.append(await _race(limited, crew, chance.randrange(2**31), windows, findings))
            findings.check(
                runs[-1].use >= USE_MIN[scale.full],
                f"seed {runs[-1].seed}: only {runs[-1].use:.1%} of the limit was used, {runs[-1].late} permits late",
            )
            print(runs[-1], flush=True)
        for violation in HistoryChecker(limited.upstream.log.read()).check_limit(LIMIT, WINDOW_SECONDS):
            findings.check(False, violation)  # also across runs
        findings.fired = sum(one.kills for one in runs)
        findings.figures = {
            "workers": crew_size,
            "runs": len(runs),
            "worst_window": max(one.worst_window for one in runs),
            "use_min": min(one.use for one in runs),
            "limit": LIMIT,
            "window_seconds": WINDOW_SECONDS,
            "permit_seconds": PERMIT_SECONDS,
            "calls": sum(one.calls for one in runs),
            "permits_late": sum(one.late for one in runs),
            "lag_seconds_max": max(one.lag_seconds_max for one in runs),
            "each": [[one.seed, one.worst_window, one.use] for one in runs],
        }
    return findings


async def _race(limited: LimitedFleet, crew: list[Worker], seed: int, windows: int, findings: Findings) -> Run:
    """Enqueue more than fits into so many windows, kill until all of it is done, and read the upstream's log."""
    fleet, chance = limited.fleet, random.Random(seed)
    await asyncio.sleep(WINDOW_SECONDS + PERMIT_SECONDS if limited.fleet.jobs else 0)  # it begins with an empty window
    before, late = len(limited.upstream.log.read()), _late(limited)
    wanted = LIMIT * (windows + 1) + TAIL
    await limited.enqueue("rate", wanted)
    done = asyncio.create_task(fleet.converge(findings, windows * WINDOW_SECONDS * 3 + 20))
    kills = 0
    while not done.done():
        pause = chance.uniform(*KILL_SECONDS)
        await asyncio.wait([done], timeout=pause)
        if not done.done() and fleet.value("SELECT count(*) FROM livewell.job WHERE state = 'ready'") > TAIL:
            crew[:] = await _replace_one(limited, crew, chance)
            kills += 1
    calls, lags = limited.upstream.log.read()[before:], limited.lags()
    run = Run(
        seed,
        kills,
        len(calls),
        busiest_window(calls, WINDOW_SECONDS).calls,
        _use(calls[: wanted - TAIL]),
        _late(limited) - late,
        round(max(lags[call.jobs[0][1]] for call in calls if call.jobs[0][1] in lags), 3),
    )
    findings.check(
        run.worst_window <= LIMIT,
        f"seed {seed}: {run.worst_window} calls within {WINDOW_SECONDS} s, allowed are {LIMIT}; "
        f"the longest way from check to stamp was {run.lag_seconds_max:.3f} s",
    )
    finished = fleet.rows("SELECT id, fence FROM livewell.job_history WHERE outcome = 'succeeded' AND queue = 'rate'")
    for violation in HistoryChecker(limited.upstream.log.read()).check_calls(finished):
        findings.check(False, violation)
    return run


async def _replace_one(limited: LimitedFleet, crew: list[Worker], chance: random.Random) -> list[Worker]:
    """kill -9 one that works, and start another in its place."""
    working = [worker for worker in crew if any("worker started" in line for line in worker.child.lines())]
    victim = chance.choice(working)
    victim.kill()
    await victim.ended()
    victim.child.close()
    return [worker for worker in crew if worker is not victim] + [limited.start()]


def _use(calls: list[Call]) -> float:
    """The share of the limit that was used from one window after the first call on, up to the last."""
    begin, end = calls[0].at_ns + int(WINDOW_SECONDS * 1e9), calls[-1].at_ns
    steady = [call for call in calls if call.at_ns >= begin]
    return round(len(steady) * WINDOW_SECONDS * 1e9 / (LIMIT * (end - begin)), 4)


def _late(limited: LimitedFleet) -> int:
    return int(
        limited.fleet.value(
            "SELECT coalesce(sum(n), 0)::integer FROM livewell.warning WHERE what = 'job released: call_rate'"
        )
    )
