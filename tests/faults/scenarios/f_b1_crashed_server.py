"""F-B1: Postgres crashes and comes back, again and again, under enqueues and workers.

Some producers speak plain SQL with ids they reserved, and repeat a call whose answer never came,
with the same ids, until it is acknowledged: one effect each, whether or not the first try had
committed. Others go through the app and give up when it gives up: at most one effect each.

Proven: with p_again = false in the repeated call finished jobs ran a second time; with
synchronous_commit = off what was acknowledged was gone after the crash.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from livewell.db import embedded
from livewell.db.embedded import EmbeddedServer
from livewell.testing import percentile
from tests.faults.database_support import (
    Producer,
    at_port,
    check_alive,
    check_torn,
    ended_since,
    eventually,
    own_server,
    proxy_to,
    rounded,
)
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B1"
TITLE = "Postgres crashes and restarts under load"

ENQUEUE = "SELECT * FROM livewell.enqueue_jobs(%s::jsonb, %s)"
KNOWN = """
SELECT count(DISTINCT id)::integer FROM (
    SELECT id FROM livewell.job UNION ALL SELECT id FROM livewell.job_history UNION ALL SELECT id FROM livewell.dead_job) f
WHERE id = ANY (%s)
"""
RECOVERY_SECONDS_MAX = 20.0
ON_THE_WAY_SECONDS = 0.01  # how long an answer travels: some commit, and the crash comes before their answer does


@dataclass(slots=True)
class Unanswered:
    """Enqueues with our own ids whose answer never came."""

    jobs: int = 0
    committed: int = 0  # how many of them were there all the same


async def run(scale: Scale) -> Findings:
    findings, choose = Findings(), scale.random()
    durable = {"fsync": "on", "synchronous_commit": "on", "max_connections": "100"}
    async with (
        own_server(durable, on_disk=scale.full) as first_life,
        open_fleet(replace(scale, server=first_life.dsn), lease_seconds=2, call_timeout_seconds=3) as fleet,
        Producer(fleet, fleet.dsn) as producer,
        proxy_to(fleet.dsn) as road,
    ):
        road.delay(ON_THE_WAY_SECONDS)
        await fleet.workers(2)
        keys, unanswered, stop = iter(range(1, 10**9)), Unanswered(), asyncio.Event()
        producing = [
            *(
                asyncio.create_task(_insist(fleet, at_port(fleet.dsn, road.port), keys, unanswered, stop))
                for _ in range(3)
            ),
            asyncio.create_task(_give_up(producer, keys, stop)),
            asyncio.create_task(_give_up(producer, keys, stop)),
        ]
        recoveries: list[float] = []
        server = first_life
        for round_number in range(scale.pick(2, 30)):
            await asyncio.sleep(choose.uniform(0.4, 0.8) if not scale.full else choose.uniform(1, 10))
            written = fleet.log.path.stat().st_size if fleet.log.path.exists() else 0
            findings.check(written > 0, "no job had run before the crash: the load was no load")
            road.reset()  # the machine is gone at once: so are the answers on their way
            server = await asyncio.to_thread(crash, server, kill=round_number % 2 == 1)
            findings.fired += 1
            ready = time.monotonic()
            first = await _first_end_after(fleet, ready, written)
            findings.check(first is not None, f"no job ended within {RECOVERY_SECONDS_MAX:g} s after restart")
            recoveries += [first] if first is not None else []
        stop.set()
        await asyncio.gather(*producing)
        # What the producers left behind is worked off at 100 a second at least.
        took = await fleet.converge(findings, 30 + fleet.live() / 100)
        adopted = producer.adopt_unknown()
        tally = fleet.audit(findings)
        torn = check_torn(fleet, findings)
        check_alive(fleet, findings)
        met = unanswered.jobs + len(producer.unknown)  # two crashes may miss every enqueue, thirty do not
        findings.check(met > 0 or not scale.full, "no enqueue met a crash: the load was no load")
        findings.figures |= {
            "acknowledged": tally.jobs - adopted,
            "acknowledged_lost": tally.lost,
            "effects_doubled": tally.doubled,
            "torn": torn,
            "unknown_outcomes": unanswered.jobs + len(producer.unknown),
            "unknown_in_fact_committed": unanswered.committed + adopted,
            "runs_repeated": tally.repeated,
            "recovery_seconds_p50": rounded(percentile(recoveries, 50)) if recoveries else None,
            "recovery_seconds_max": rounded(max(recoveries, default=None)),
            "converged_seconds": rounded(took),
        }
    return findings


def crash(server: EmbeddedServer, *, kill: bool) -> EmbeddedServer:
    """An immediate stop, or kill -9 of the postmaster; then start it again, on the same port."""
    if kill:
        os.kill(server.pid, signal.SIGKILL)
    else:
        embedded.stop(server.data_dir, mode="immediate")
    again = embedded.start(server.data_dir, wait_seconds=60)
    if again.port != server.port or again.pid == server.pid:
        raise AssertionError(f"the server did not crash and come back: {server} {again}")
    return again


async def _first_end_after(fleet: Fleet, instant: float, offset: int) -> float | None:
    found: list[float] = []

    def ended() -> bool:
        found[:] = [at for at in ended_since(fleet, offset) if at > instant]
        return bool(found)

    await eventually(ended, RECOVERY_SECONDS_MAX)
    return found[0] - instant if found else None


async def _insist(fleet: Fleet, road: str, keys: Iterator[int], unanswered: Unanswered, stop: asyncio.Event) -> None:
    """Plain SQL, one call after the other.

    Reserve ids, enqueue with them, repeat the same call until it is answered.
    """
    while not stop.is_set():
        try:
            async with await psycopg.AsyncConnection.connect(road, autocommit=True, connect_timeout=5) as client:
                while not stop.is_set():
                    row = await (await client.execute("SELECT livewell.reserve_job_ids(1)")).fetchone()
                    mine = {next(keys): row[0] + n for n in range(5)} if row else {}
                    await _until_acknowledged(client, fleet, mine, unanswered)
                    fleet.jobs.update(mine)
                    fleet.tasks.update(dict.fromkeys(mine, "effect"))
                    await asyncio.sleep(0.01)
        except psycopg.OperationalError:
            await asyncio.sleep(0.05)


async def _until_acknowledged(
    client: psycopg.AsyncConnection[tuple[Any, ...]], fleet: Fleet, mine: dict[int, int], unanswered: Unanswered
) -> None:
    document = json.dumps(
        [{"id": job, "queue": "work", "kind": "effect", "payload": {"key": key}} for key, job in mine.items()]
    )
    try:
        await client.execute(ENQUEUE, (document, False))
    except psycopg.OperationalError:
        unanswered.jobs += len(mine)
    else:
        return
    looked = False
    while True:
        await asyncio.sleep(0.05)
        with suppress(psycopg.OperationalError):  # it is still down
            async with await psycopg.AsyncConnection.connect(fleet.dsn, autocommit=True, connect_timeout=5) as other:
                if not looked:  # was it committed after all? Asked before anything is repeated
                    found = await (await other.execute(KNOWN, (sorted(mine.values()),))).fetchone()
                    unanswered.committed += found[0] if found else 0
                    looked = True
                await other.execute(ENQUEUE, (document, True))
                return


async def _give_up(producer: Producer, keys: Iterator[int], stop: asyncio.Event) -> None:
    """Enqueue through the app; what it could not do is left at that."""
    while not stop.is_set():
        await producer.enqueue([next(keys) for _ in range(5)])
        await asyncio.sleep(0.02)
