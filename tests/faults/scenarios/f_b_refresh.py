"""F-B1, F-B2, F-B8 for refreshing.

The database crashes, its backends are killed, its disk is full, while values are being stored.

A value, its ledger row, the counters and the end of its job are of one transaction: whichever
statement it was that the backend died in, all of them are there or none. Triggers write down which
transaction wrote which row; job_history shows its own (xmin). While the disk is full readers are
served what there is, called stale when it is; when there is room again everything is fresh again by
itself.

Can it fail? Yes: tests/faults/test_refresh_judge.py shows that a row, a version or a counter that
was written alone is found.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from tests.faults.database_support import OURS, check_alive, own_server, rounded
from tests.faults.refresh_fleet import RefreshFleet, open_refresh_fleet
from tests.faults.scenario import Findings, Scale, Scenario
from tests.faults.scenarios.f_b1_crashed_server import crash
from tests.faults.scenarios.f_b8_full_disk import fill, find_damage, move_tables, small_disk

KEYS = 20
FRESH_SECONDS_MAX = 60.0
STORING = f"""
SELECT pid FROM pg_stat_activity WHERE {OURS} AND state IN ('active', 'idle in transaction')
ORDER BY query LIKE '%%store_refreshes%%' DESC, query LIKE '%%dispatch%%' DESC LIMIT 1
"""
ANY = f"SELECT pid FROM pg_stat_activity WHERE {OURS} ORDER BY random() LIMIT 1"


async def run_crashes(scale: Scale) -> Findings:
    """Postgres crashes and comes back while keys of one second to live are refreshed."""
    findings, chance = Findings(), scale.random()
    durable = {"fsync": "on", "synchronous_commit": "on", "max_connections": "100"}
    async with (
        own_server(durable, on_disk=scale.full) as first_life,
        _fleet(replace(scale, server=first_life.dsn), call_timeout_seconds=3) as market,
    ):
        server = first_life
        await _begin(market, findings)
        recoveries = []
        for number in range(scale.pick(2, 30)):
            await asyncio.sleep(chance.uniform(0.3, 1.0))
            versions = market.fleet.value("SELECT sum(version) FROM livewell.ledger")
            server = await asyncio.to_thread(crash, server, kill=number % 2 == 1)
            findings.fired += 1
            now = await _survives(market, "SELECT sum(version) FROM livewell.ledger")
            findings.check(now >= versions, f"{versions} versions were seen before the crash, {now} after it")
            took = await market.until_fresh(findings, FRESH_SECONDS_MAX, anew=True)
            recoveries += [took] if took is not None else []
        check_alive(market.fleet, findings)
        findings.figures = _figures(market, findings) | {
            "fresh_again_seconds_max": rounded(max(recoveries, default=None))
        }
    return findings


async def run_kills(scale: Scale) -> Findings:
    """Backends are terminated, those that store first."""
    findings, chance = Findings(), scale.random()
    async with _fleet(scale) as market:
        await _begin(market, findings)
        storing = 0
        for _ in range(scale.pick(25, 1000)):
            storing += await _kill_one(market, findings, chance)
            await asyncio.sleep(chance.uniform(0, 0.1))
        took = await market.until_fresh(findings, FRESH_SECONDS_MAX, anew=True)
        check_alive(market.fleet, findings)
        findings.check(storing > 0, "no backend was killed in the middle of anything")
        findings.figures = _figures(market, findings) | {
            "killed": findings.fired,
            "killed_at_work": storing,
            "fresh_again_seconds": rounded(took),
        }
    return findings


async def run_full_disk(scale: Scale) -> Findings:
    """The disk under every table is full, and then it is not."""
    async with small_disk() as disk:
        if disk is None:
            return Findings(skipped="mounting a small disk needs root, and a machine that lets root do it")
        async with (
            own_server({"fsync": "off", "max_connections": "100"}) as server,
            _fleet(replace(scale, server=server.dsn)) as market,
        ):
            return await _fill_and_free(scale, market, disk)


async def _fill_and_free(scale: Scale, market: RefreshFleet, disk: Path) -> Findings:
    findings = Findings()
    await asyncio.to_thread(move_tables, market.fleet, disk)
    await _begin(market, findings)
    reads, recoveries = 0, []
    for _ in range(scale.pick(1, 10)):
        await asyncio.to_thread(fill, disk)
        for _ in range(scale.pick(15, 100)):
            # A read that would demand a refresh cannot write that down; what there is is given all
            # the same.
            reading = await market.app.get("quote", market.watched[0][1])
            findings.check(reading.value is not None, "a reader got nothing while the disk was full")
            reads += 1
            with suppress(psycopg.Error):
                market.look()
            await asyncio.sleep(0.1)
        # Nobody may call a value fresh that could not be refreshed for so long; reading alone needs
        # no room.
        verdicts = set(market.look().values())
        findings.fired += 1
        findings.check(verdicts <= {"stale", "failing", "fresh"}, f"verdicts on a full disk: {verdicts}")
        (disk / "ballast").unlink()
        took = await market.until_fresh(findings, FRESH_SECONDS_MAX, anew=True)
        recoveries += [took] if took is not None else []
    refused = [
        line
        for worker in market.fleet.children
        for line in worker.child.lines()
        if "53100" in line or "No space" in line
    ]
    check_alive(market.fleet, findings)
    damaged = await asyncio.to_thread(find_damage, market.fleet, findings)
    findings.figures = _figures(market, findings) | {
        "corrupted_rows": damaged,
        "reads_with_value_while_full": reads,
        "refusals_logged": len(refused),
        "fresh_again_seconds_max": rounded(max(recoveries, default=None)),
    }
    return findings


def _fleet(scale: Scale, **settings: Any) -> AbstractAsyncContextManager[RefreshFleet]:
    return open_refresh_fleet(scale, types=(), ttl="1s", limits="breaker = false", lease_seconds=2, **settings)


async def _begin(market: RefreshFleet, findings: Findings) -> None:
    await market.apply("quote", fetch={"batch": None})
    await market.apply("profile")
    await market.workers(2)
    market.watch("quote", market.symbols(KEYS))
    market.watch("profile", market.symbols(KEYS // 4))
    await market.until_fresh(findings, FRESH_SECONDS_MAX)


async def _kill_one(market: RefreshFleet, findings: Findings, chance: Random) -> int:
    """Terminate a backend of ours; answers 1 when it was at work."""
    busy: list[tuple[int]] = []
    if chance.randrange(10) < 8:
        for _ in range(50):
            busy = [(pid,) for (pid,) in market.fleet.rows(STORING)]
            if busy:
                break
            await asyncio.sleep(0.002)
    found = busy or market.fleet.rows(ANY)
    if found and market.fleet.value("SELECT pg_terminate_backend(%s)", (found[0][0],)):
        findings.fired += 1
        return len(busy)
    return 0


async def _survives(market: RefreshFleet, query: str) -> int:
    for _ in range(200):
        with suppress(psycopg.Error):
            return int(market.fleet.value(query))
        await asyncio.sleep(0.05)
    return -1


def _figures(market: RefreshFleet, findings: Findings) -> dict[str, object]:
    ruling = market.judge(findings)
    return {"torn_commits": ruling.torn, **ruling.figures()}


SCENARIOS = (
    Scenario("F-B1-refresh", "Postgres crashes while values are stored", run_crashes),
    Scenario("F-B2-refresh", "backends are killed while values are stored", run_kills),
    Scenario("F-B8-refresh", "the disk under the values is full", run_full_disk),
)
