"""F-C1, F-C2, F-C3 for schedules.

Workers whose clocks are wrong or jump, and a database whose clock steps. F-C4: daylight saving,
leap days, and the zone of the process.

Which slot is due is decided by the database's clock, so wrong clocks of workers change nothing:
each slot begins once, none is missing, none is early, nobody is busy. When the database's clock
steps forwards, the slots of the step are caught up with by the policy; when it steps back, no slot
begins again, and the schedule goes on when the clock has reached its next one.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from datetime import UTC, datetime

from livewell.db.scratch import TestClock
from livewell.schedule.cron import next_slot
from tests.faults.fleet import open_fleet
from tests.faults.scenario import Findings, Scale, Scenario
from tests.faults.scenarios.f_c_clock import BUSY_SHARE_MAX, NO_LIBRARY, SHIFTS, _cpu_seconds, _library, _shifted
from tests.faults.schedule_support import EVERY_SECONDS, Schedulers

STEP_SECONDS = 6.0
ZONES = ("Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC")
CRONS = ("30 2 * * *", "0 2 * * *", "0 */6 * * *", "59 23 28-31 * *", "0 12 29 2 *")
BEGIN, END = datetime(2027, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)


async def run_shifted(scale: Scale) -> Findings:
    """Every worker has another wrong clock."""
    library = _library()
    if library is None:
        return Findings(skipped=NO_LIBRARY)
    findings = Findings()
    async with open_fleet(scale) as fleet:
        schedulers = Schedulers(fleet)
        for shift in SHIFTS.values():
            findings.fired += len(await schedulers.start(1, env=_shifted(library, FAKETIME=shift)))
        begun, seen = time.monotonic(), len(schedulers.starts())
        findings.check(await schedulers.until(seen + scale.pick(20, 600), 300), "the schedule stands still")
        most = (time.monotonic() - begun) / EVERY_SECONDS + 100
        findings.check(len(schedulers.starts()) - seen <= most, "more slots began than there was time for")
        findings.figures = schedulers.judge(findings)
    return findings


async def run_jumping(scale: Scale) -> Findings:
    """One worker, whose clock jumps back and forth."""
    library = _library()
    if library is None:
        return Findings(skipped=NO_LIBRARY)
    findings, file = Findings(), scale.folder / "faketime-schedule"
    file.write_text("+0\n")
    async with open_fleet(scale) as fleet:
        schedulers = Schedulers(fleet)
        how = _shifted(library, FAKETIME_TIMESTAMP_FILE=str(file), FAKETIME_NO_CACHE="1")
        [worker] = await schedulers.start(1, env=how)
        findings.check(await schedulers.until(5), "the schedule did not begin")
        begun, spent = time.monotonic(), _cpu_seconds(worker)
        for shift in ("-3600", "+3600", "-7200", "+0") * scale.pick(1, 20):
            file.write_text(f"{shift}\n")
            findings.fired += 1
            findings.check(await schedulers.until(len(schedulers.starts()) + 5), f"no slots after a jump to {shift}")
        share = (_cpu_seconds(worker) - spent) / (time.monotonic() - begun)
        findings.check(share < BUSY_SHARE_MAX, f"it used {share:.0%} of a core: a busy loop")
        findings.figures = schedulers.judge(findings)
    return findings


async def run_steps(scale: Scale) -> Findings:
    """The database's clock steps forwards and back."""
    findings = Findings()
    async with open_fleet(scale, lease_seconds=2, heartbeat_seconds=0.2) as fleet:
        clock, schedulers = TestClock(fleet.dsn), Schedulers(fleet)
        await schedulers.start(2)
        findings.check(await schedulers.until(5), "the schedule did not begin")
        for _ in range(scale.pick(1, 20)):
            for step in (STEP_SECONDS, -STEP_SECONDS):
                await asyncio.to_thread(clock.advance, step)
                findings.fired += 1
                findings.check(
                    await schedulers.until(len(schedulers.starts()) + 10), f"no slots after a step of {step} s"
                )
        # A run whose lease a step has ended has crashed, and its slot has begun all the same.
        findings.figures = schedulers.judge(findings)
    return findings


async def run_zones(scale: Scale) -> Findings:
    """The slots of two years in five zones are the same whatever zone the process lives in, and each comes once."""
    findings = Findings()
    expected = slots_digest()
    for zone in ("UTC", "America/New_York", "Asia/Kolkata", "Nowhere/Wrong"):
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from tests.faults.scenarios.f_c_schedule import slots_digest; print(slots_digest())",
            env={"TZ": zone, "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path))},
            stdout=asyncio.subprocess.PIPE,
        )
        said = (await child.communicate())[0].decode().strip()
        findings.fired += 1
        findings.check(said == expected, f"with TZ={zone} the slots are others")
    findings.figures = {"zones": len(ZONES), "texts": len(CRONS), "environments": findings.fired}
    return findings


def slots_digest() -> str:
    """Of all slots of two years; they grow, so each comes once."""
    digest = hashlib.sha256()
    for zone in ZONES:
        for cron in CRONS:
            at, before = next_slot(cron, zone, BEGIN), BEGIN
            while at < END:
                assert at > before
                digest.update(f"{zone} {cron} {at.isoformat()}\n".encode())
                at, before = next_slot(cron, zone, at), at
    return digest.hexdigest()


SCENARIOS = (
    Scenario("F-C1-schedule", "schedulers with wrong clocks", run_shifted),
    Scenario("F-C2-schedule", "a scheduler whose clock jumps", run_jumping),
    Scenario("F-C3-schedule", "the database's clock steps under schedules", run_steps),
    Scenario("F-C4", "daylight saving, leap days, and the process's own zone", run_zones),
)
