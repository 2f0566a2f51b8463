"""The run: an empty database and store, a server, workers that render, users, and kill -9 of what renders.

database, store ──▶ server ──▶ users live, for so long ──▶ all that was accepted ends ──▶ the cleaner is done ──▶ verdict
                └─▶ workers and their children ──kill -9 every second and a half; the next one takes its place
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from livewell.app import Livewell
from livewell.apps.kit.postgres import Home, home
from livewell.apps.kit.processes import LEASE_SECONDS, KeptProcess, LivewellProcess, Say, kept, log_folder, short_lease
from livewell.apps.resumes.demo.client import Client
from livewell.apps.resumes.demo.kills import Kills, kill_now_and_then
from livewell.apps.resumes.demo.remake import judge_remade
from livewell.apps.resumes.demo.user import User
from livewell.apps.resumes.demo.verdict import ROWS, USAGE, Verdict, judge_rows, judge_users
from livewell.db import Database, migrate
from livewell.errors import LivewellError
from livewell.exports.duties import clean
from livewell.settings import Settings
from livewell.testing.processes import free_port

MakeKey = Callable[[Database, str], Awaitable[str]]  # keys are the server's, which stands above the apps

TARGET = "livewell.apps.plain:app"
QUEUE = "exports"
USERS = 20
WORKERS = 2
_RENDERS = 2  # at once in each worker: the machine of a demo has few cores
_START_SECONDS = 60.0
_CLEAN_SECONDS = 90.0  # a file that a killed cleaner had taken up is taken up again after a minute
_TICK_SECONDS = 0.2
_DIRTY = "SELECT count(*) FROM livewell.export_file f WHERE f.state <> 'stored'"


async def race(settings: Settings, say: Say, make_key: MakeKey, *, seconds: float, seed: int = 7) -> Verdict:
    """Run it, and judge."""
    started, verdict, dice = time.monotonic(), Verdict(), random.Random(seed)  # noqa: S311 - choices of a demo
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(home(settings, say))
        await asyncio.to_thread(migrate.migrate, found.address, roles=settings.roles)
        folder = await stack.enter_async_context(log_folder("livewell-resumes-"))
        store = folder / "exports"
        app = Livewell(Settings.load(database_url=found.address, export_store=str(store)))
        await app.open()
        stack.push_async_callback(app.close)
        workers = [_worker(n, found.address, folder, say) for n in range(1, WORKERS + 1)]
        port = free_port()
        await stack.enter_async_context(kept([_server(port, found, folder, say), *workers]))
        users = await _users(app, make_key, f"http://127.0.0.1:{port}", seed)
        await _answers(users[0])
        say(f"{USERS} users, {WORKERS} workers; a rendering child or a worker is killed every second and a half")
        kills = Kills()
        async with _living(users, seconds, say) as living:
            killing = asyncio.create_task(kill_now_and_then(workers, dice, kills, say))
            try:
                await asyncio.wait([living], timeout=seconds)
            finally:
                killing.cancel()
                await asyncio.wait([killing])
        await _clean(app, verdict)
        verdict.children_killed, verdict.workers_killed = kills.children, kills.workers
        await _judge(app, users, store, verdict, say)
    verdict.seconds = round(time.monotonic() - started, 1)
    return verdict


def _environment(address: str, folder: Path) -> dict[str, str]:
    return {
        **short_lease(address, grace_seconds=2),
        "LIVEWELL_LISTEN_URL": address,
        "LIVEWELL_EXPORT_STORE": str(folder / "exports"),
        "LIVEWELL_EXPORT_DAILY_MAX": "10000",
        "LIVEWELL_EXPORT_RENDERS_MAX": str(_RENDERS),
        "LIVEWELL_LOG_LEVEL": "error",
    }


def _worker(number: int, address: str, folder: Path, say: Say) -> KeptProcess:
    async def spawn(start: int) -> LivewellProcess:
        name, log = f"resumes-{number}-{start}", folder / f"{number}.log"
        return await LivewellProcess.start_worker(name, TARGET, queue=QUEUE, log=log, env=_environment(address, folder))

    return KeptProcess(f"worker {number}", spawn, say)


def _server(port: int, found: Home, folder: Path, say: Say) -> KeptProcess:
    """On the embedded server with a role for each kind of request; elsewhere one login does all."""
    env = _environment(found.address, folder) | {
        "LIVEWELL_REQUESTS_PER_SECOND": "10000",
        "LIVEWELL_READ_REQUESTS_PER_SECOND": "10000",
    }
    if found.folder is None:
        env["LIVEWELL_ROLES"] = "none"
    else:
        env["LIVEWELL_DATA_DIR"] = str(found.folder)
        del env["LIVEWELL_DATABASE_URL"], env["LIVEWELL_LISTEN_URL"]

    async def spawn(_: int) -> LivewellProcess:
        return await LivewellProcess.start("server", ["serve", f"--port={port}"], log=folder / "server.log", env=env)

    return KeptProcess("server", spawn, say)


async def _users(app: Livewell, make_key: MakeKey, address: str, seed: int) -> list[User]:
    keys = [await make_key(app.database, f"demo-{n}") for n in range(USERS)]
    return [User(n, Client(address, key), seed) for n, key in enumerate(keys)]


async def _answers(user: User) -> None:
    """Wait until the server listens and a worker has told what can be exported."""
    give_up = time.monotonic() + _START_SECONDS
    while not await asyncio.to_thread(user.is_served):
        if time.monotonic() > give_up:
            raise LivewellError(f"the server of the demo did not offer exports within {_START_SECONDS:g} s")
        await asyncio.sleep(_TICK_SECONDS)


@asynccontextmanager
async def _living(users: Sequence[User], seconds: float, say: Say) -> AsyncIterator[asyncio.Future[list[None]]]:
    """Each user in a thread. After the block they quit, and wait for what they were promised."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(len(users), thread_name_prefix="demo-user") as pool:
        living = asyncio.gather(*(loop.run_in_executor(pool, user.live) for user in users))
        try:
            yield living
        finally:
            for user in users:
                user.quits = True
            await living
        say(f"{seconds:g} s are over; now until everything that was accepted has ended")
        await asyncio.gather(*(loop.run_in_executor(pool, user.finish) for user in users))


async def _clean(app: Livewell, verdict: Verdict) -> None:
    """The cleaner comes now, and not when its minute is over, until it leaves nothing."""
    give_up = time.monotonic() + _CLEAN_SECONDS
    while True:
        await clean(app.database, app.exports.store, grace_seconds=2 * LEASE_SECONDS)
        [(dirty,)] = await app.database.call(_DIRTY)
        if not dirty:
            return
        if time.monotonic() > give_up:
            verdict.lies.append(f"{dirty} files were not cleaned up within {_CLEAN_SECONDS:g} s")
            return
        await asyncio.sleep(_TICK_SECONDS)


async def _judge(app: Livewell, users: Sequence[User], store: Path, verdict: Verdict, say: Say) -> None:
    rows = await app.database.call_dicts(ROWS)
    judge_users([user.saw for user in users], rows, verdict)
    judge_rows(rows, await app.database.call_dicts(USAGE), store, verdict)
    say("rendering everything that was downloaded once more …")
    loaded = {line.export for user in users for line in user.saw.downloads}
    await judge_remade(app, [row for row in rows if row["id"] in loaded], verdict)
