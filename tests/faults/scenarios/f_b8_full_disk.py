"""F-B8: the disk that holds the job tables is full.

A server of our own keeps every table of the fleet on a small tmpfs; a ballast file takes the rest
of it, and is removed again. Enqueues are refused with a typed error, readers are served, workers
live on, and everything resumes when there is room. amcheck looks for damage afterwards. Needs root,
for the mount.

Proven: with the ballast left in place no job ended and nothing converged.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.faults.database_support import Producer, check_alive, check_torn, eventually, own_server, rounded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B8"
TITLE = "the disk under the job tables is full"

DISK_MEGABYTES = 32
DISK_FULL = "53100"
RESUME_SECONDS_MAX = 20.0
MOVE = (
    "ALTER TABLE ALL IN TABLESPACE pg_default SET TABLESPACE small",
    "ALTER INDEX ALL IN TABLESPACE pg_default SET TABLESPACE small",
)
HEAPS = """
SELECT c.relname, v.msg FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, LATERAL verify_heapam(c.oid) v
WHERE n.nspname IN ('livewell', 'public') AND c.relkind = 'r'
"""
INDEXES = """
SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_am a ON a.oid = c.relam
WHERE n.nspname = 'livewell' AND c.relkind = 'i' AND a.amname = 'btree'
"""


async def run(scale: Scale) -> Findings:
    if os.geteuid() != 0:
        return Findings(skipped="mounting a small disk needs root")
    # The disk first, the server second: it is stopped before its disk is taken away.
    async with small_disk() as disk:
        if disk is None:
            return Findings(skipped="this machine does not let root mount a tmpfs")
        async with (
            own_server({"fsync": "off", "max_connections": "100"}) as server,
            open_fleet(replace(scale, server=server.dsn), lease_seconds=2) as fleet,
        ):
            return await _fill_and_free(scale, fleet, disk)


async def _fill_and_free(scale: Scale, fleet: Fleet, disk: Path) -> Findings:
    findings, choose = Findings(), scale.random()
    await asyncio.to_thread(move_tables, fleet, disk)
    await fleet.workers(2)
    resumed: list[float] = []
    reads = 0
    async with Producer(fleet, fleet.dsn) as producer:
        keys = iter(range(1, 10**9))
        for _ in range(scale.pick(1, 15)):
            await producer.enqueue([next(keys) for _ in range(100)])
            await asyncio.to_thread(fill, disk)
            full_until = time.monotonic() + choose.uniform(0.7, 1.1) * (10 if scale.full else 1)
            while time.monotonic() < full_until:
                await producer.enqueue([next(keys) for _ in range(50)])
                reads += fleet.value("SELECT count(*) >= 0 FROM livewell.job")
                await asyncio.sleep(0.05)
            (disk / "ballast").unlink()
            freed = time.monotonic()
            await producer.enqueue([next(keys) for _ in range(20)])
            took = await eventually(partial(_ended_after, fleet, freed), RESUME_SECONDS_MAX)
            findings.check(took is not None, f"no job ended within {RESUME_SECONDS_MAX:g} s after there was room")
            resumed += [took] if took is not None else []
        findings.fired = producer.errors.get(DISK_FULL, 0)
        converged = await fleet.converge(findings, 30)
        adopted = producer.adopt_unknown()
    others = {what: n for what, n in producer.errors.items() if what != DISK_FULL}
    findings.check(not others, f"enqueues failed of something else than the disk: {others}")
    findings.check(adopted == 0, f"{adopted} enqueues were refused and committed all the same")
    findings.check(reads > 0, "nobody could read while the disk was full")
    tally = fleet.audit(findings)
    torn = check_torn(fleet, findings)
    damaged = await asyncio.to_thread(find_damage, fleet, findings)
    check_alive(fleet, findings)
    findings.figures |= {
        "refused_enqueues": findings.fired,
        "resume_seconds_max": rounded(max(resumed, default=None)),
        "corrupted_rows": damaged,
        "reads_while_full": reads,
        "torn": torn,
        "lost": tally.lost,
        "effects_doubled": tally.doubled,
        "runs_repeated": tally.repeated,
        "converged_seconds": rounded(converged),
    }
    return findings


@asynccontextmanager
async def small_disk(megabytes: int = DISK_MEGABYTES) -> AsyncIterator[Path | None]:
    """A tmpfs of a few megabytes, unmounted whatever happens.

    None where mounting is not allowed.
    """
    place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="lw-small-disk-"))
    options = f"size={megabytes}m,mode=0755"
    mounted = await asyncio.to_thread(_quietly, ["mount", "-t", "tmpfs", "-o", options, "livewell-faults", str(place)])
    try:
        yield place if mounted else None
    finally:
        if mounted and not await asyncio.to_thread(_quietly, ["umount", str(place)]):
            await asyncio.to_thread(_quietly, ["umount", "-l", str(place)])  # a file is still open: gone when it closes
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def _quietly(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def move_tables(fleet: Fleet, disk: Path) -> None:
    """Every table and index of the fleet goes to the small disk."""
    owner = Path(fleet.value("SHOW data_directory")).stat()
    space = disk / "space"
    space.mkdir(mode=0o700)
    os.chown(space, owner.st_uid, owner.st_gid)
    fleet.rows(f"CREATE TABLESPACE small LOCATION '{space}'")
    for statement in MOVE:
        fleet.rows(statement)


def fill(disk: Path) -> None:
    """Take every byte that is left."""
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        size = 2**20
        while size >= 1:
            try:
                ballast.write(b"\0" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2


def _ended_after(fleet: Fleet, instant: float) -> bool:
    return any(line.event == "done" and line.at > instant for line in fleet.events())


def find_damage(fleet: Fleet, findings: Findings) -> int:
    """What amcheck finds, in every table and index."""
    fleet.rows("CREATE EXTENSION IF NOT EXISTS amcheck")
    found = fleet.rows(HEAPS)
    findings.check(not found, f"amcheck: {found[:3]}")
    fleet.rows(INDEXES)
    failures = fleet.value(
        "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
    )
    findings.check(failures == 0, f"{failures} pages have a wrong checksum")
    return len(found) + int(failures)
