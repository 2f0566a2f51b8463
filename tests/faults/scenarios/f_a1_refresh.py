"""F-A1 for refreshing: workers are killed while their calls are under way.

F-A2: they stand still past their lease, others fetch and store anew, then they go on.

F-A1: the calls of the dead are charged, their keys are fetched by somebody else after about a
lease, and no limit is broken meanwhile. F-A2: the zombies have an old answer in their hands and are
`stubborn`: they ignore that they were cancelled and store it. Each is told that it is fenced, and
the newer value stands.

What happens without the fence, and without the lock on the ledger: tests/races/test_store.py, where
both are taken away.
"""

from __future__ import annotations

import asyncio
from random import Random

from livewell.apps.market.simulator.knobs import Knobs
from tests.faults.fleet import Worker
from tests.faults.refresh_app import STUBBORN
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale, Scenario

RATE, WINDOW_SECONDS = 40, 1.0
LIMITS = f'rate = "{RATE}/s"\nreserve = "0%"\nconcurrency = 20\nbreaker = false'
LEASE_SECONDS = 1.0
LATENCY_SECONDS = 0.4
KEYS = 30
LOST = "SELECT count(*)::integer FROM livewell.dead_job WHERE reason = 'lost'"


async def run_kills(scale: Scale) -> Findings:
    """Kill one of the crew, in the middle of calls, until enough have died."""
    findings, chance = Findings(), scale.random()
    knobs = Knobs(tick_seconds=1, latency_seconds=LATENCY_SECONDS)
    async with open_refresh_fleet(
        scale, types=(), ttl="2s", knobs=knobs, limits=LIMITS, limit=(RATE, WINDOW_SECONDS), lease_seconds=LEASE_SECONDS
    ) as market:
        await market.apply("quote", fetch={"batch": None})
        crew = await market.workers(scale.pick(2, 3))
        market.watch("quote", market.symbols(KEYS))
        await market.until_fresh(findings, 60)
        cut_off = await _storm(market, crew, chance, scale.pick(2, 200))
        findings.fired = scale.pick(2, 200)
        findings.check(cut_off > 0, "no kill hit a worker in the middle of a call")
        unlucky = market.fleet.value(LOST)
        took = await market.until_fresh(findings, _patience(market), anew=True)
        ruling = market.judge(findings)
        findings.figures = {
            "kills": findings.fired,
            "calls_cut_off": cut_off,
            "lost_five_times": unlucky,
            "all_fresh_again_seconds": round(took, 1) if took is not None else None,
            **ruling.figures(),
        }
    return findings


def _patience(market: RefreshFleet) -> float:
    """Seconds.

    Whoever was lost five times is a dead letter, backed off for a minute: right, and rare.
    """
    return 150 if market.fleet.value(LOST) else 60


async def _storm(market: RefreshFleet, crew: list[Worker], chance: Random, kills: int) -> int:
    """Kill, wait for a replacement, go on; answers how many refreshes were cut off."""
    cut_off = 0
    for _ in range(kills):
        market.stay()
        await asyncio.sleep(chance.uniform(0.05, 0.5))
        for _ in range(100):  # one who has a call under way, if there is one soon
            busy = [worker for worker in crew if _in_hand(market, worker)]
            if busy:
                break
            await asyncio.sleep(0.02)
        victim = chance.choice(busy or crew)
        victim.kill()
        cut_off += len(_in_hand(market, victim))
        crew.remove(victim)
        await victim.ended()
        crew += await market.workers(1)
    return cut_off


def _in_hand(market: RefreshFleet, *workers: Worker) -> list[tuple[int, int]]:
    """(fence, pid) of the refreshes that these processes have begun and not ended."""
    pids, runs = {worker.pid for worker in workers}, set[tuple[int, int]]()
    for line in market.fleet.events():
        if line.pid in pids:
            (runs.add if line.event == "start" else runs.discard)((line.key, line.pid))
    return sorted(runs)


async def run_zombies(scale: Scale) -> Findings:
    """All but one freeze with answers on their way, and thaw when everything has been fetched anew."""
    findings, chance = Findings(), scale.random()
    knobs = Knobs(tick_seconds=1, latency_seconds=LATENCY_SECONDS)
    attempted = fenced = 0
    async with open_refresh_fleet(
        scale, types=(), ttl="1s", knobs=knobs, limits="breaker = false", lease_seconds=LEASE_SECONDS, worker_slots=6
    ) as market:
        await market.apply("quote", fetch={"batch": None})
        crew = await market.workers(scale.pick(2, 4), env={STUBBORN: "1"})
        market.watch("quote", market.symbols(12))
        await market.until_fresh(findings, 60)
        for _ in range(scale.pick(2, 60)):
            market.stay()
            tried, told = await _round(market, findings, crew, chance)
            attempted += tried
            fenced += told
        await market.until_fresh(findings, _patience(market), anew=True)
        findings.fired = attempted
        findings.check(attempted == fenced, f"{attempted} zombies tried to store, {fenced} were fenced")
        ruling = market.judge(findings)
        findings.figures = {
            "zombies_attempted": attempted,
            "zombies_fenced": fenced,
            "fenced_counted": market.counts()["fenced"],
            **ruling.figures(),
        }
    return findings


async def _round(market: RefreshFleet, findings: Findings, crew: list[Worker], chance: Random) -> tuple[int, int]:
    survivor = chance.choice(crew)
    zombies = [worker for worker in crew if worker is not survivor]
    victims: list[tuple[int, int]] = []
    for _ in range(500):
        if _in_hand(market, *zombies):
            for zombie in zombies:
                zombie.freeze()
            victims = _in_hand(market, *zombies)
            if victims:
                break
            for zombie in zombies:
                zombie.thaw()
        await asyncio.sleep(0.02)
    findings.check(bool(victims), "no zombie had a refresh in hand within 10 s")
    fences = [fence for fence, _ in victims]
    # Somebody else owns the jobs, or has ended them: then whatever the zombies bring is too late.
    taken = "NOT EXISTS (SELECT FROM livewell.job WHERE fence = ANY (%s) AND state = 'running')"
    if await market.fleet.until(taken, 30, (fences,)) is None:
        findings.check(False, "the survivor did not take over within 30 s")
    # Who froze after its result had been sent, and before it knew, was no zombie.
    done = {
        fence
        for (fence,) in market.fleet.rows("SELECT fence FROM livewell.job_history WHERE fence = ANY (%s)", (fences,))
    }
    fences = [fence for fence in fences if fence not in done]
    await asyncio.sleep(chance.uniform(0.0, 1.5))
    for zombie in zombies:
        zombie.thaw()
    outcomes: dict[int, str] = {}
    for _ in range(1000):
        outcomes = {
            line.key: line.event for line in market.fleet.events() if line.key in fences and line.event != "start"
        }
        if len(outcomes) == len(fences):
            break
        await asyncio.sleep(0.02)
    findings.check(len(outcomes) == len(fences), f"only {len(outcomes)} of {len(fences)} thawed refreshes ended")
    for zombie in zombies:
        findings.check(zombie.alive, f"a thawed worker ended itself: {zombie.child.describe(8)}")
    return len(outcomes), sum(outcome == "fenced" for outcome in outcomes.values())


SCENARIOS = (
    Scenario("F-A1-refresh", "workers are killed in the middle of calls", run_kills),
    Scenario("F-A2-refresh", "zombies with an old answer in their hands", run_zombies),
)
