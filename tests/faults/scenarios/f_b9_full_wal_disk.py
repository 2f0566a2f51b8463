"""F-B9: the disk under the WAL is full while values are stored.

Postgres panics, and is down until somebody makes room.

A server of our own keeps pg_wal on a small tmpfs; a ballast file takes the rest of it, and the
server is made to want another segment. Its recovery needs room too, so it stays down. Workers live
on and ask less often; after the ballast is gone and the server was started again, everything is
fresh by itself, and nothing that was seen before is lost. Needs root, for the mount.

Can it fail? Yes: with the ballast left in place the server did not come back, and nothing became
fresh.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psycopg

from livewell.db import embedded
from livewell.db.embedded import EmbeddedServer
from tests.faults.database_support import check_alive, own_server, rounded
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale
from tests.faults.scenarios.f_b8_full_disk import fill, find_damage, small_disk

CODE = "F-B9"
TITLE = "the disk under the WAL is full"

DISK_MEGABYTES = 120
KEYS = 20
DOWN_SECONDS = 5.0
FRESH_SECONDS_MAX = 60.0
LINES_PER_SECOND_MAX = 40  # of one worker while the database is away: six connections, each backing off
VERSIONS = "SELECT sum(version) FROM livewell.ledger"


async def run(scale: Scale) -> Findings:
    # The disk first, the server second: it is stopped before its disk is taken away.
    async with small_disk(DISK_MEGABYTES) as disk:
        if disk is None:
            return Findings(skipped="mounting a small disk needs root, and a machine that lets root do it")
        small = {"min_wal_size": "32MB", "max_wal_size": "48MB", "max_connections": "100", "fsync": "on"}
        async with own_server(small) as first_life:
            server = await asyncio.to_thread(_move_wal, first_life, disk)
            async with open_refresh_fleet(
                replace(scale, server=server.dsn), types=(), ttl="1s", limits="breaker = false", lease_seconds=2
            ) as market:
                return await _fill_and_free(scale, market, server, disk)


async def _fill_and_free(scale: Scale, market: RefreshFleet, server: EmbeddedServer, disk: Path) -> Findings:
    findings = Findings()
    await market.apply("quote", fetch={"batch": None})
    await market.workers(2)
    market.watch("quote", market.symbols(KEYS))
    await market.until_fresh(findings, FRESH_SECONDS_MAX)
    recoveries, lines_max = [], 0.0
    for _ in range(scale.pick(1, 10)):
        versions, before = market.fleet.value(VERSIONS), _panics(server)
        await asyncio.to_thread(fill, disk)
        await asyncio.to_thread(_until_down, server, before)
        findings.fired += _panics(server) > before
        lines = _lines(market)
        await asyncio.sleep(DOWN_SECONDS)
        lines_max = max(lines_max, (_lines(market) - lines) / DOWN_SECONDS / len(market.fleet.children))
        (disk / "ballast").unlink()
        server = await asyncio.to_thread(embedded.start, server.data_dir, wait_seconds=60)
        took = await market.until_fresh(findings, FRESH_SECONDS_MAX, anew=True)
        recoveries += [took] if took is not None else []
        now = market.fleet.value(VERSIONS)
        findings.check(now >= versions, f"{versions} versions were seen before the panic, {now} after it")
    check_alive(market.fleet, findings)
    findings.check(
        lines_max <= LINES_PER_SECOND_MAX, f"a worker wrote {lines_max:.0f} lines a second while the database was away"
    )
    damaged = await asyncio.to_thread(find_damage, market.fleet, findings)
    ruling = market.judge(findings)
    findings.figures = {
        "panics": findings.fired,
        "corrupted_rows": damaged,
        "torn_commits": ruling.torn,
        "fresh_again_seconds_max": rounded(max(recoveries, default=None)),
        "log_lines_per_second_max": round(lines_max, 1),
        **ruling.figures(),
    }
    return findings


def _move_wal(server: EmbeddedServer, disk: Path) -> EmbeddedServer:
    embedded.stop(server.data_dir)
    found = next(path for path in server.data_dir.rglob("pg_wal") if path.is_dir())
    owner = found.stat()
    moved = Path(shutil.move(found, disk / "pg_wal"))
    for path in (disk, moved, *moved.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    found.symlink_to(moved)
    return embedded.start(server.data_dir, wait_seconds=60)


def _until_down(server: EmbeddedServer, panics: int) -> None:
    """Ask for one segment after the other until nobody answers any more."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        try:
            with psycopg.connect(server.dsn, autocommit=True, connect_timeout=5) as connection:
                for _ in range(20):
                    connection.execute("CREATE TABLE IF NOT EXISTS public.more_wal (x int)")
                    connection.execute("INSERT INTO public.more_wal VALUES (1)")
                    connection.execute("SELECT pg_switch_wal()")
        except psycopg.OperationalError:
            if _panics(server) > panics:
                return
        time.sleep(0.1)
    raise AssertionError("the server survived a full disk under its WAL")


def _panics(server: EmbeddedServer) -> int:
    found = 0
    for path in server.data_dir.rglob("*.log"):
        with suppress(OSError):
            found += sum("PANIC" in line for line in path.read_text(errors="replace").splitlines())
    return found


def _lines(market: RefreshFleet) -> int:
    return sum(len(worker.child.lines()) for worker in market.fleet.children)
