"""F-A9: a scheduler is frozen (SIGSTOP) in the middle of a run, longer than its lease.

The other goes on; then it is thawed.

The oracle is the log of the handlers. Each slot begins once, none is left out (the schedule catches
up with all), and from the freeze to the next slot it takes no longer than the lease. Thawed, the
old term can neither renew nor end its run: that stays crashed.

Can it fail? The functions can: tests/races/test_schedule.py breaks the fence of finish_run, and the
three walls around a slot.
"""

from __future__ import annotations

import asyncio

from tests.faults.fleet import Worker, open_fleet
from tests.faults.scenario import Findings, Scale
from tests.faults.schedule_support import Schedulers

CODE = "F-A9"
TITLE = "a scheduler frozen past its lease"

LEASE_SECONDS = 2.0
SLACK_SECONDS = 1.0  # for a busy machine with two cores
CRASHED = (
    "SELECT state::text FROM livewell.run WHERE schedule = 'tick' AND round(extract(epoch FROM due_at) * 1000000) = %s"
)


async def run(scale: Scale) -> Findings:
    """Freeze whoever is in a run, again and again."""
    findings, gaps = Findings(), list[float]()
    async with open_fleet(scale, lease_seconds=LEASE_SECONDS, heartbeat_seconds=0.2) as fleet:
        schedulers = Schedulers(fleet)
        crew = await schedulers.start(2)
        findings.check(await schedulers.until(10), "the schedule did not begin")
        for _ in range(scale.pick(2, 40)):
            gap = await _round(schedulers, crew, findings)
            if gap is None:
                break
            gaps.append(gap)
            findings.fired += 1
        seen = len(schedulers.starts())
        findings.check(await schedulers.until(seen + 10), "no more slots after the last thaw")
        findings.figures = schedulers.judge(findings)
    late = [round(gap, 2) for gap in gaps if gap > LEASE_SECONDS + SLACK_SECONDS]
    findings.check(not late, f"gaps of {late} s, with a lease of {LEASE_SECONDS:g} s")
    findings.figures |= {"longest_gap_ms": round(max(gaps, default=0) * 1000)}
    return findings


async def _round(schedulers: Schedulers, crew: list[Worker], findings: Findings) -> float | None:
    """Freeze, wait for the other, thaw; answers the seconds without a slot."""
    victim = await schedulers.catch(crew)
    if victim is None:
        findings.check(False, "nobody was in a run within 30 s")
        return None
    slot, seen = schedulers.starts()[-1].key, len(schedulers.starts())
    frozen = victim.freeze()
    schedulers.let_go()
    taken = await schedulers.until(seen + 1, 30)
    findings.check(taken, "the other scheduler did not go on within 30 s")
    gap = schedulers.starts()[seen].at - frozen if taken else 30.0
    victim.thaw()
    await schedulers.until(len(schedulers.starts()) + 5, 30)
    await asyncio.sleep(0.2)
    state = schedulers.fleet.value(CRASHED, (slot,))
    findings.check(state == "crashed", f"the frozen run is {state}: an old term has written")
    return gap
