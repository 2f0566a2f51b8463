"""F-A6: impatient stops: SIGTERM twice, SIGINT twice, three times, and SIGINT followed by SIGKILL, 100 ms apart.

Twice hands everything back at once although the grace is long, and ends with 0. A third time ends
the process on the spot (130), SIGKILL with -9: their claims are taken back when the lease runs out.
In the end no claim belongs to nobody.

Can it fail? Yes: with release_worker replaced by one that only answers 0, claims of the polite ones
are orphans; with recover_jobs replaced by one that does nothing, those of the killed ones are.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence

from tests.faults.fleet import Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-A6"
TITLE = "Impatient stops: right exit codes, no orphan claims"

SLOTS = 4
GRACE_SECONDS = 60.0
APART_SECONDS = 0.1
TIDY_SECONDS = 0.7  # handlers tidy up when they are cancelled, so the third signal finds the second still being obeyed
HURRY_SECONDS_MAX = 6.0
# Signals, 100 ms apart, and the exit codes that are right.
STOPS: tuple[tuple[tuple[signal.Signals, ...], int], ...] = (
    ((signal.SIGTERM, signal.SIGTERM), 0),
    ((signal.SIGINT, signal.SIGINT), 0),
    ((signal.SIGTERM, signal.SIGTERM, signal.SIGTERM), 130),
    ((signal.SIGINT, signal.SIGKILL), -9),
)


async def run(scale: Scale) -> Findings:
    """Stop one worker in each way, all at once; as many rounds as the scale asks for."""
    findings, rounds = Findings(), scale.pick(1, 15)
    codes: dict[str, list[int]] = {}
    hurried: list[float] = []
    orphans = 0
    async with open_fleet(scale, grace_seconds=GRACE_SECONDS, worker_slots=SLOTS) as fleet:
        for _ in range(rounds):
            fleet.shut_gate()
            crew = await fleet.workers(len(STOPS))
            incarnations = [await worker.started() for worker in crew]
            await _fill(fleet, crew, findings)
            took = await asyncio.gather(
                *(_stop(worker, signals) for worker, (signals, _) in zip(crew, STOPS, strict=True))
            )
            for worker, incarnation, (signals, right), seconds in zip(crew, incarnations, STOPS, took, strict=True):
                name = "+".join(number.name for number in signals)
                code = worker.child.returncode
                codes.setdefault(name, []).append(-99 if code is None else code)
                findings.check(code == right, f"{name}: exit code {code}, {right} is right: {worker.child.describe(5)}")
                findings.fired += 1
                if code == 0:
                    hurried.append(seconds)
                    findings.check(
                        seconds < HURRY_SECONDS_MAX, f"{name}: it took {seconds:.1f} s, the hurry did not help"
                    )
                    orphans += _orphans_of(fleet, incarnation, name, findings)
            fleet.open_gate()
            successor = (await fleet.workers(1))[0]
            await fleet.converge(findings, 30)
            successor.terminate()
            findings.check(await successor.ended() == 0, "the successor did not end with 0")
        left = fleet.value("SELECT count(*) FROM livewell.job WHERE state = 'running'")
        findings.check(left == 0, f"{left} claims are left at the end")
        tally = fleet.audit(findings)
        findings.figures = {
            "rounds": rounds,
            "exit_codes": {name: sorted(set(found)) for name, found in codes.items()},
            "hurried_seconds_max": round(max(hurried, default=0), 2),
            "grace_seconds": GRACE_SECONDS,
            "orphan_claims": orphans + left,
            "runs_repeated": tally.repeated,
            "jobs_lost": tally.lost,
            "effects_doubled": tally.doubled,
        }
    return findings


async def _fill(fleet: Fleet, crew: Sequence[Worker], findings: Findings) -> None:
    """Enqueue until every worker has a job in hand that will not end."""
    pids = {worker.pid for worker in crew}
    for turn in range(600):
        if pids <= {line.pid for line in fleet.events() if line.event == "start"}:
            return
        if turn % 10 == 0:
            await fleet.enqueue("gated", len(crew) * SLOTS, tidy_seconds=TIDY_SECONDS)
        await asyncio.sleep(0.03)
    findings.check(False, "not every worker had a job within 20 s")


async def _stop(worker: Worker, signals: Sequence[signal.Signals]) -> float:
    """Send the signals and wait for the end; answers the seconds from the second signal."""
    for number in signals[:-1]:
        worker.child.send_signal(number)
        await asyncio.sleep(APART_SECONDS)
    worker.child.send_signal(signals[-1])
    asked = time.monotonic()
    await worker.ended(GRACE_SECONDS + 20)
    return time.monotonic() - asked


def _orphans_of(fleet: Fleet, incarnation: int, name: str, findings: Findings) -> int:
    orphans = int(fleet.value("SELECT count(*) FROM livewell.job WHERE worker = %s", (incarnation,)))
    findings.check(orphans == 0, f"{name}: {orphans} claims left behind by a worker that had time to hand them back")
    leases = fleet.value("SELECT count(*) FROM livewell.worker WHERE id = %s", (incarnation,))
    findings.check(leases == 0, f"{name}: its lease is left behind")
    return orphans
