"""What the F-B scenarios share.

Servers of their own, roads to them that can be broken, tasks that quarrel over the database, and
counts from outside.

A worker with the tasks of the fleet and those below: `fleet.workers(1, command=SPECIAL)`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from livewell import Backoff, Job, Livewell
from livewell.db import embedded
from livewell.db.embedded import EmbeddedServer
from livewell.errors import DatabaseConflict, DatabaseUnavailable
from livewell.settings import Settings
from livewell.testing.proxy import TcpProxy
from tests.faults.embedded_support import quick_place
from tests.faults.fleet import Fleet, Worker
from tests.faults.fleet_app import app, note, noted
from tests.faults.scenario import Findings

SPECIAL = ("-m", "livewell.cli", "worker", "tests.faults.database_support:app")
OURS = "application_name = 'livewell' AND datname = current_database()"
INSERT_EFFECT = "INSERT INTO effect (key, fence, pid) VALUES (%s, %s, %s)"
ACCOUNTS = "CREATE TABLE account (id integer PRIMARY KEY, n bigint NOT NULL DEFAULT 0)"

# An effect and the end of its job carry the same fence and commit together: one without the other
# is a torn commit.
TORN = """
SELECT count(*) FILTER (WHERE h.fence IS NULL)::integer, count(*) FILTER (WHERE e.fence IS NULL)::integer
FROM effect e FULL JOIN (SELECT fence FROM livewell.job_history WHERE kind = ANY (%s) AND outcome = 'succeeded') h USING (fence)
"""


# ── servers and roads ──


@asynccontextmanager
async def own_server(parameters: Mapping[str, str], *, on_disk: bool = False) -> AsyncIterator[EmbeddedServer]:
    """A server of the scenario's own, that it may crash; gone afterwards with all its data."""
    base = await asyncio.to_thread(_open_folder, on_disk)
    data = base / "data"
    try:
        yield await asyncio.to_thread(embedded.start, data, parameters=parameters, wait_seconds=60)
    finally:
        try:
            await asyncio.to_thread(embedded.stop, data, mode="immediate")
        finally:
            await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)


def _open_folder(on_disk: bool) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lw-faults-", dir=None if on_disk else quick_place()))
    folder.chmod(0o755)  # the account that runs the server must pass
    return folder


def at_port(dsn: str, port: int) -> str:
    """The same database by way of a port of this machine."""
    return make_conninfo("", **{**conninfo_to_dict(dsn), "host": "127.0.0.1", "port": port})


def proxy_to(dsn: str) -> TcpProxy:
    """A breakable road to that server.

    `async with proxy_to(dsn) as proxy: at_port(dsn, proxy.port)`.
    """
    parts = conninfo_to_dict(dsn)
    return TcpProxy(str(parts.get("host") or "127.0.0.1"), int(str(parts.get("port") or 5432)))


# ── producers and workers ──


class Producer:
    """Enqueues effects from this process, in any of the possible ways.

    It keeps acknowledged effects apart from those that may or may not have happened.
    """

    def __init__(self, fleet: Fleet, dsn: str, **settings: object) -> None:
        self._fleet = fleet
        self._settings = Settings.model_validate(
            {"database_url": SecretStr(dsn), **fleet.settings, "pool_size_max": 8, **settings}
        )
        self.app = Livewell(self._settings)
        self.app.queue("work", attempts=100, backoff=Backoff(0.05, 0.2))
        self._task = self.app.task(queue="work", name="effect")(_effect)
        self.unknown: set[int] = set()  # keys whose enqueue raised: at most one job each
        self.errors: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        await self.app.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(psycopg.Error):
            await self.app.close()

    async def enqueue(self, keys: list[int]) -> bool:
        """Enqueue one job per key; False when the outcome is unknown."""
        try:
            answers = await self._task.enqueue_many([{"key": key} for key in keys])
        except DatabaseUnavailable as error:
            self.unknown.update(keys)
            what = error.sqlstate or "no answer"
            self.errors[what] = self.errors.get(what, 0) + 1
            return False
        self._fleet.jobs.update(zip(keys, (answer.id for answer in answers), strict=True))
        self._fleet.tasks.update(dict.fromkeys(keys, "effect"))
        return True

    def adopt_unknown(self) -> int:
        """After the storm: what was enqueued without our knowing becomes a job like any other.

        Answers how many there were.
        """
        found = self._fleet.rows(
            "SELECT DISTINCT e.key, h.id FROM effect e JOIN livewell.job_history h USING (fence) WHERE e.key = "
            "ANY (%s)",
            (sorted(self.unknown),),
        )
        self._fleet.jobs.update(found)
        self._fleet.tasks.update({key: "effect" for key, _ in found})
        return len(found)


def _effect(key: int, seconds: float = 0.0) -> None:
    """Only enqueued from here; the handler is fleet_app's."""


# ── counts from outside ──


def check_torn(fleet: Fleet, findings: Findings, kinds: tuple[str, ...] = ("effect",)) -> int:
    """All or none: answers how many effects stand without the end of their job, or the other way round."""
    effects, ends = fleet.rows(TORN, (list(kinds),))[0]
    findings.check(effects == 0, f"{effects} effects were committed without the end of their job")
    findings.check(ends == 0, f"{ends} jobs ended without their effect")
    return int(effects + ends)


def check_alive(fleet: Fleet, findings: Findings, *workers: Worker) -> None:
    """No worker process ended by itself."""
    for worker in workers or fleet.children:
        findings.check(worker.alive, f"a worker process ended by itself: {worker.child.describe(8)}")


@dataclass(slots=True)
class LeaseWatch:
    """What the worker table showed, read again and again from outside."""

    workers: set[int] = field(default_factory=set)
    gap_seconds_max: float = 0.0  # the longest anybody went without renewing
    left_seconds_min: float = float("inf")  # the closest anybody came to losing the lease
    reads: int = 0

    def look(self, fleet: Fleet) -> None:
        """Read it once."""
        self.reads += 1
        for worker, gap, left in fleet.rows(
            "SELECT id, extract(epoch FROM clock_timestamp() - renewed_at)::float8,"
            " extract(epoch FROM expires_at - clock_timestamp())::float8 FROM livewell.worker"
        ):
            self.workers.add(worker)
            self.gap_seconds_max = max(self.gap_seconds_max, gap)
            self.left_seconds_min = min(self.left_seconds_min, left)

    async def watch(self, fleet: Fleet, seconds: float, every_seconds: float = 0.03) -> None:
        """Read it for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look(fleet)
            await asyncio.sleep(every_seconds)


def ended_since(fleet: Fleet, offset: int) -> list[float]:
    """When handlers ended well, of the lines that the log got after it had this many bytes.

    Reading it all takes long after an hour.
    """
    with fleet.log.path.open("rb") as log:
        log.seek(offset)
        words = [line.split() for line in log.read().decode().split("\n")]
    return [float(line[3]) for line in words if len(line) == 4 and line[0].lstrip("\x1e") == "done"]


async def eventually(holds: Callable[[], Any], seconds: float) -> float | None:
    """Ask until the answer is true; answers the seconds it took, or None when it never was."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > seconds:
            return None
        await asyncio.sleep(0.02)
    return time.monotonic() - begun


def rounded(seconds: float | None) -> float | None:
    """For the report."""
    return None if seconds is None else round(seconds, 3)


# ── tasks that quarrel over the database ──


@app.task(queue="work", timeout=120)
async def hold(job: Job, key: int, seconds: float) -> None:
    """Take a connection of the pool and keep it, in a transaction, for some seconds.

    Say how the waiting for it ended.
    """
    with noted(key):
        note("asked", key)
        try:
            async with job.transaction() as tx:
                note("got", key)
                await tx.execute(INSERT_EFFECT, (key, job.claimed.fence, os.getpid()))
                await asyncio.sleep(seconds)
        except DatabaseUnavailable:
            note("refused", key)
            raise


@app.task(queue="work", timeout=120)
async def cross(job: Job, key: int, first: int, second: int, seconds: float) -> None:
    """Take two row locks with a pause between them: two of these in opposite order deadlock."""
    with noted(key):
        try:
            async with job.transaction() as tx:
                await tx.execute("UPDATE account SET n = n + 1 WHERE id = %s", (first,))
                await asyncio.sleep(seconds)
                await tx.execute("UPDATE account SET n = n + 1 WHERE id = %s", (second,))
                await tx.execute(INSERT_EFFECT, (key, job.claimed.fence, os.getpid()))
        except DatabaseConflict as error:
            note(error.sqlstate, key)
            raise


@app.task(queue="work", timeout=120)
async def reread(job: Job, key: int, account: int, seconds: float) -> None:
    """Read, think, write what was read plus one, in one snapshot.

    Of two at once, one fails with 40001.
    """
    with noted(key):
        try:
            async with job.transaction() as tx:
                await tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                ((n,),) = await tx.fetch("SELECT n FROM account WHERE id = %s", (account,))
                await asyncio.sleep(seconds)
                await tx.execute("UPDATE account SET n = %s WHERE id = %s", (n + 1, account))
                await tx.execute(INSERT_EFFECT, (key, job.claimed.fence, os.getpid()))
        except DatabaseConflict as error:
            note(error.sqlstate, key)
            raise
