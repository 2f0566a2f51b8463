"""The run: an empty database, three worker processes, calls about the same people, and a kill now and then.

database ──▶ workers ──▶ calls, for so long ──▶ until nothing is left to do ──▶ two verdicts
                └──kill -9 every second and a half; the next one takes its place
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path

from livewell.apps.contacts.demo.people import Pair, call
from livewell.apps.contacts.demo.program import QUEUE, RECEIVED_FILE, TENANT, app, know
from livewell.apps.contacts.demo.verdict import Verdict, judge_contacts, judge_events
from livewell.apps.kit.postgres import home
from livewell.apps.kit.processes import KeptProcess, LivewellProcess, Say, kept, log_folder, short_lease
from livewell.db import migrate
from livewell.settings import Settings

TARGET = "livewell.apps.contacts.demo.program:app"
WORKERS = 3
CALLS_AT_ONCE = 40
BACKLOG_MAX = 2_000
_TICK_SECONDS = 0.1
_KILL_SECONDS = 1.5
_END_SECONDS = 120.0

_LEFT = """
SELECT (SELECT count(*) FROM (SELECT FROM livewell.job LIMIT 10000) j), (SELECT count(*) FROM livewell.dead_job),
    (SELECT count(*) FROM (SELECT FROM livewell.event_delivery LIMIT 10000) d), (SELECT count(*) FROM livewell.dead_event)
"""
_GROUPS = "SELECT array_agg(ARRAY[type, value]) FROM livewell.contact_identity WHERE tenant = %s GROUP BY contact_id"
_EVENTS = "SELECT livewell.event_id(number), key, topic FROM livewell.event ORDER BY number"
_ORPHANS = """
SELECT count(*) FROM livewell.contact c
WHERE NOT EXISTS (SELECT FROM livewell.contact_identity i WHERE i.tenant = c.tenant AND i.contact_id = c.id)
"""


async def race(settings: Settings, say: Say, *, seconds: float, seed: int = 7) -> Verdict:
    """Run it, and judge."""
    started, verdict, dice = time.monotonic(), Verdict(), random.Random(seed)  # noqa: S311 - people of a demo
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(home(settings, say))
        await asyncio.to_thread(migrate.migrate, found.address, roles=settings.roles)
        folder = await stack.enter_async_context(log_folder("livewell-contacts-"))
        await app.open(settings=Settings.load(database_url=found.address))
        stack.push_async_callback(app.close)
        workers = _workers(found.address, folder, say)
        await stack.enter_async_context(kept(workers))
        say(f"{WORKERS} workers, each of them a relay; one is killed every {_KILL_SECONDS:g} s")
        killing = asyncio.create_task(_kill(workers, dice, verdict, say))
        try:
            calls = await _call(seconds, dice)
        finally:
            killing.cancel()
            await asyncio.wait([killing])
        say(f"{len(calls):,} calls are made; now until all of them and their events have ended")
        await _wait_for_the_end(verdict)
        verdict.calls = len(calls)
        await _judge(calls, folder / "received", verdict)
    verdict.seconds = round(time.monotonic() - started, 1)
    return verdict


def _workers(address: str, folder: Path, say: Say) -> list[KeptProcess]:
    env = {**short_lease(address, grace_seconds=2), RECEIVED_FILE: str(folder / "received")}

    def spawned(number: int) -> KeptProcess:
        async def spawn(start: int) -> LivewellProcess:
            name = f"contacts-{number}-{start}"
            return await LivewellProcess.start_worker(name, TARGET, queue=QUEUE, log=folder / f"{number}.log", env=env)

        return KeptProcess(f"worker {number}", spawn, say)

    return [spawned(number) for number in range(1, WORKERS + 1)]


async def _call(seconds: float, dice: random.Random) -> list[list[Pair]]:
    """Calls about the newest people, as fast as the workers keep up."""
    calls: list[list[Pair]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        newest = len(calls) // 10
        some = [call(dice, newest) for _ in range(CALLS_AT_ONCE)]
        [(waiting,)] = await app.database.call("SELECT count(*) FROM (SELECT FROM livewell.job LIMIT 10000) j")
        if waiting < BACKLOG_MAX:
            await know.enqueue_many({"identities": pairs} for pairs in some)
            calls += some
        await asyncio.sleep(_TICK_SECONDS)
    return calls


async def _kill(workers: list[KeptProcess], dice: random.Random, verdict: Verdict, say: Say) -> None:
    """kill -9, one at a time."""
    while True:
        await asyncio.sleep(_KILL_SECONDS)
        victim = dice.choice(workers)
        say(f"kill -9 {victim.pid}")
        await victim.kill()
        verdict.kills += 1


async def _wait_for_the_end(verdict: Verdict) -> None:
    """Until no call and no delivery is left; what is dead is a violation."""
    give_up = time.monotonic() + _END_SECONDS
    while True:
        [(jobs, dead_jobs, deliveries, dead_events)] = await app.database.call(_LEFT)
        if jobs == deliveries == 0:
            break
        if time.monotonic() > give_up:
            verdict.lies.append(f"{jobs:,} calls and {deliveries:,} deliveries had not ended after {_END_SECONDS:g} s")
            break
        await asyncio.sleep(_TICK_SECONDS)
    if dead_jobs or dead_events:
        verdict.lies.append(f"{dead_jobs:,} calls and {dead_events:,} events are dead letters")


async def _judge(calls: list[list[Pair]], received: Path, verdict: Verdict) -> None:
    groups = await app.database.call(_GROUPS, (TENANT,))
    judge_contacts(calls, [[(kind, value) for kind, value in pairs] for (pairs,) in groups], verdict)
    emitted = await app.database.call(_EVENTS)
    judge_events([(number, key, topic) for number, key, topic in emitted], received, verdict)
    [(verdict.merges,)] = await app.database.call("SELECT count(*) FROM livewell.contact_merge")
    [(orphans,)] = await app.database.call(_ORPHANS)
    if orphans:
        verdict.lies.append(f"{orphans:,} contacts have no identity")
