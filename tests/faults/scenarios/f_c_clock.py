"""F-C1, F-C2: workers whose clocks are wrong, or jump. F-C3: the database's clock steps.

No instant that is compared is made in Python, so workers that live an hour ago, in an hour and in
2030 dispatch, fetch, judge and store as one with a right clock would: nothing is refused as coming
from the future, nothing is called before it is stale, no lease is lost, and every verdict is true.
When the database's own clock steps, work may be done twice and is never lost, and a value that was
checked in what is the future now is called stale, not fresh for an hour longer: staleness fails
safe.

Can it fail? Yes: with validate judging by the worker's own clock, the worker of an hour ago refuses
every answer as future_source; with a verdict that believes a check time in the future, values of
before the step are called fresh while nothing can be fetched.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AbstractAsyncContextManager
from glob import glob
from pathlib import Path

from livewell.db.scratch import TestClock
from tests.faults.database_support import check_alive
from tests.faults.fleet import Worker
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale, Scenario

TTL_SECONDS = 2
KEYS = 10
SHIFTS = {"+1h": "+3600", "-1h": "-3600", "2030": "@2030-01-01 00:00:00"}
PLACES = (
    "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
)
LIBRARY = "LIVEWELL_TEST_FAKETIME"  # a libfaketimeMT.so.1 that is somewhere else
NO_LIBRARY = (
    f"libfaketime is not installed (apt-get install libfaketime), and {LIBRARY} names none: no clock can be shifted"
)
LOST = "SELECT coalesce(sum(n), 0)::integer FROM livewell.warning WHERE what = 'lease lost'"
BUSY_SHARE_MAX = 0.9
STEP_SECONDS = 20.0  # more than any two backends may differ by


def _library() -> str | None:
    given = os.environ.get(LIBRARY)
    found = [given] if given else [place for pattern in PLACES for place in glob(pattern)]  # noqa: PTH207 - a pattern of an absolute path
    return found[0] if found and Path(found[0]).exists() else None


def _shifted(library: str, **how: str) -> dict[str, str]:
    """Durations stay true: only the wall clock is wrong."""
    return {"LD_PRELOAD": library, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1", **how}


async def run_shifted(scale: Scale) -> Findings:
    """All workers have wrong clocks, each another."""
    library = _library()
    if library is None:
        return Findings(skipped=NO_LIBRARY)
    findings = Findings()
    async with _fleet(scale) as market:
        starting = (market.workers(1, env=_shifted(library, FAKETIME=shift)) for shift in SHIFTS.values())
        findings.fired = len(await asyncio.gather(*starting))
        await _see_that_all_is_well(market, findings, scale.pick(4, 120))
    return findings


async def run_jumping(scale: Scale) -> Findings:
    """One worker, whose clock jumps back and forth while it works."""
    library = _library()
    if library is None:
        return Findings(skipped=NO_LIBRARY)
    findings, file = Findings(), scale.folder / "faketime"
    file.write_text("+0\n")
    async with _fleet(scale) as market:
        how = {"FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_NO_CACHE": "1"}
        [worker] = await market.workers(1, env=_shifted(library, **how))
        market.watch("quote", market.symbols(KEYS))
        await market.until_fresh(findings, 60)
        begun, spent = time.monotonic(), _cpu_seconds(worker)
        for shift in ("-3600", "+3600", "-7200", "+0") * scale.pick(1, 20):
            file.write_text(f"{shift}\n")
            findings.fired += 1
            await asyncio.sleep(1.0)
        share = (_cpu_seconds(worker) - spent) / (time.monotonic() - begun)
        findings.check(share < BUSY_SHARE_MAX, f"it used {share:.0%} of a core: a busy loop")
        await _see_that_all_is_well(market, findings, 2)
        findings.figures |= {"cpu_share": round(share, 2)}
    return findings


async def run_steps(scale: Scale) -> Findings:
    """The database's clock steps forwards and back; livewell.now() is the only clock there is."""
    findings = Findings()
    async with _fleet(scale) as market:
        clock = TestClock(market.fleet.dsn)
        await market.workers(2)
        market.watch("quote", market.symbols(KEYS))
        await market.until_fresh(findings, 60)
        stepped_fresh = 0
        for _ in range(scale.pick(1, 10)):
            await asyncio.to_thread(clock.advance, STEP_SECONDS)
            findings.fired += 1
            await market.until_fresh(findings, 60, anew=True)
            # Nothing can be fetched from here on, so nothing may be fresh once its time to live is
            # over by any clock.
            await market.simulator.turn(faults={"error_503": 1.0})
            await asyncio.to_thread(clock.advance, -STEP_SECONDS)
            findings.fired += 1
            await asyncio.sleep(TTL_SECONDS + 0.5)
            fresh = [place for place, verdict in market.look().items() if verdict == "fresh"]
            stepped_fresh += len(fresh)
            findings.check(not fresh, f"{len(fresh)} keys are called fresh {TTL_SECONDS} s after the last good answer")
            await market.simulator.turn(faults={})
            market.fleet.rows("UPDATE livewell.ledger SET retry_at = NULL, failures = 0, due_at = livewell.now()")
            await market.until_fresh(findings, 90, anew=True)
        check_alive(market.fleet, findings)
        market.claims.clear()  # they were made by a clock that the simulator does not have
        ruling = market.judge(findings)
        findings.figures = {"steps": findings.fired, "fresh_after_a_step_back": stepped_fresh, **ruling.figures()}
    return findings


def _fleet(scale: Scale) -> AbstractAsyncContextManager[RefreshFleet]:
    return open_refresh_fleet(scale, ttl=f"{TTL_SECONDS}s", limits="breaker = false", lease_seconds=2)


async def _see_that_all_is_well(market: RefreshFleet, findings: Findings, seconds: float) -> None:
    """Keys are refreshed when they are stale, not before and not after; nobody loses a lease."""
    if not market.watched:
        market.watch("quote", market.symbols(KEYS))
    await market.until_fresh(findings, 60)
    before, begun, lost = len(market.calls()), time.monotonic(), market.fleet.value(LOST)
    await asyncio.sleep(seconds)
    await market.until_fresh(findings, 30, anew=True)
    elapsed = time.monotonic() - begun
    asked = sum(len(call["keys"]) for call in market.calls()[before:])
    most = KEYS * (elapsed / TTL_SECONDS + 2)
    findings.check(asked <= most, f"{asked} keys were asked for in {elapsed:.1f} s, {most:.0f} at most became stale")
    refused = {name: n for name, n in market.counts().items() if name not in ("stored", "unchanged", "corrected")}
    findings.check(not refused, f"true answers were refused: {refused}")
    findings.check(market.fleet.value(LOST) == lost, "a lease was lost")
    check_alive(market.fleet, findings)
    ruling = market.judge(findings)
    findings.figures = {"keys_asked": asked, "became_stale_at_most": round(most), **ruling.figures()}


def _cpu_seconds(worker: Worker) -> float:
    fields = Path(f"/proc/{worker.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


SCENARIOS = (
    Scenario("F-C1", "workers with wrong clocks", run_shifted),
    Scenario("F-C2", "a worker whose clock jumps", run_jumping),
    Scenario("F-C3", "the database's clock steps", run_steps),
)
