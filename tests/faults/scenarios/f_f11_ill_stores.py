"""F-F11-store: a bucket that is slow, answers 503, or says that we are not who we were. F-F11-disk: a full disk.

F-F11-store holds: while the store is ill nothing is lost and nobody is told 100 %; exports wait for
their next attempt with a typed reason; a delete answers, and its file goes later; when the store is
well again everything ends as it should. F-F11-disk holds: the same, in a folder on a disk without a
byte left, and no half-written file stays on it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.export_fleet import ExportFleet, Promise, open_exports
from tests.faults.scenario import Findings, Scale, Scenario
from tests.faults.scenarios.f_b8_full_disk import fill, small_disk
from tests.faults.scenarios.f_f11_exports import hurried

ILLS = {
    "slow": None,
    "busy": "store_unreachable",
    "expired": "store_unreachable",
    "clock": "store_unreachable",
    "full": "store_full",
}
_SEEN_SECONDS_MAX = 60.0
DISK_MEGABYTES = 8


async def run_ill_stores(scale: Scale) -> Findings:
    """One illness after the other."""
    findings = Findings()
    async with open_exports(scale) as fleet:
        for ill, reason in ILLS.items():
            for round_number in range(scale.pick(1, 5)):
                await _ill(fleet, findings, ill, reason, round_number)
        struck = (fleet.folder / "struck").read_text().split()
        findings.fired = len(struck)
        findings.figures["answers_of_an_ill_store"] = {ill: struck.count(ill) for ill in ILLS}
        await _end(fleet, findings)
    return findings


async def _ill(fleet: ExportFleet, findings: Findings, ill: str, reason: str | None, round_number: int) -> None:
    user = fleet.user(f"{ill}-{round_number}")
    before = await fleet.ask(user, f"before-{ill}-{round_number}")
    assert before is not None
    async with hurried(fleet):
        await fleet.finish(before, findings)
    mark = fleet.folder / f"ill-{ill}"
    mark.touch()
    try:
        meanwhile = await fleet.ask(user, f"sheet-{ill}-{round_number}")
        assert meanwhile is not None
        if reason is None:
            await fleet.finish(meanwhile, findings)
        else:
            seen = await _reason(fleet, meanwhile)
            findings.check(seen == reason, f"{meanwhile.document}: the reason is {seen}, not {reason}")
            answer = await user.call("DELETE", f"/v1/exports/{before.id}")
            findings.check(answer.status == 200, f"{before.document} cannot be deleted: {answer.status}")
            before.deleted, before.state = True, "deleted"
    finally:
        mark.unlink()
    async with hurried(fleet):
        state = await fleet.finish(meanwhile, findings)
    findings.check(state == "finished", f"{meanwhile.document} ended as {state}, {meanwhile.reason}")


async def run_full_disk(scale: Scale) -> Findings:
    """The folder of the store is on a small disk, which is filled and freed."""
    findings = Findings()
    async with small_disk(DISK_MEGABYTES) as disk:
        if disk is None:
            findings.skipped = "a tmpfs cannot be mounted here"
            return findings
        async with open_exports(scale, in_bucket=False, folder=disk / "exports") as fleet:
            for n in range(scale.pick(1, 10)):
                await _full(fleet, findings, disk, n)
            await _end(fleet, findings)
    return findings


async def _full(fleet: ExportFleet, findings: Findings, disk: Path, n: int) -> None:
    user = fleet.user(f"disk-{n}")
    await asyncio.to_thread(fill, disk)
    try:
        promise = await fleet.ask(user, f"sheet-{n}")
        assert promise is not None
        seen = await _reason(fleet, promise)
        findings.check(seen == "store_full", f"{promise.document}: the reason is {seen}")
        findings.fired += seen == "store_full"
        found = [path for path in fleet.files.rglob("*") if path.is_file() and path.stat().st_size]
        kept = sum(one.state == "finished" for one in fleet.promises) + (n > 0)  # and the key of the links
        extra = [f"{path.parts[-3]}/{path.name}" for path in found] if len(found) > kept else []
        findings.check(not extra, f"files of failed attempts are on the full disk: {extra}")
    finally:
        (disk / "ballast").unlink()
    async with hurried(fleet):
        state = await fleet.finish(promise, findings)
    findings.check(state == "finished", f"{promise.document} ended as {state}, {promise.reason}")


async def _reason(fleet: ExportFleet, promise: Promise) -> str | None:
    """The reason of the first attempt that failed."""
    holds = f"(SELECT reason IS NOT NULL FROM livewell.export WHERE id = '{promise.id}')"
    await fleet.fleet.until(holds, _SEEN_SECONDS_MAX)
    told = (await promise.user.call("GET", f"/v1/exports/{promise.id}")).json
    reason: str | None = told["reason"]
    return reason


async def _end(fleet: ExportFleet, findings: Findings) -> None:
    async with hurried(fleet):
        findings.figures["converged_seconds"] = await fleet.converge(findings)
    findings.figures |= fleet.audit(findings)


SCENARIOS = (
    Scenario("F-F11-store", "A bucket that is slow, busy, full, or does not know us any more", run_ill_stores),
    Scenario("F-F11-disk", "The disk of the exports is full", run_full_disk),
)
