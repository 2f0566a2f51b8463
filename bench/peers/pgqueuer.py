"""PgQueuer at its best settings: batch 500, asyncpg pool of 4, uvloop.

A child program, see bench/stage.py.

A drain runs in its own drain mode, which ends when the queue is empty; jobs of 5 ms run at most 50
at once, and then its batch may be 25 at most. The last finish is the last entry of its log table.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from pgqueuer.core.qm import QueueManager
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.payload import PAYLOAD
from bench.stage import Stage, perform
from bench.system import python_system

SYSTEM = python_system("pgqueuer", "bench.peers.pgqueuer")

_BULK = 5000
_BATCH = 500
_POOL = 4


@asynccontextmanager
async def _queries(dsn: str) -> AsyncIterator[Any]:
    """One connection, without a pool.

    That resets a connection after every use, which costs an enqueuer a round trip and four
    statements.
    """
    connection = await asyncpg.connect(dsn)
    yield Queries(AsyncpgDriver(connection))
    await connection.close()


async def install(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Create its tables."""
    del options
    async with _queries(dsn) as queries:
        await queries.install()
    return {}


async def fill(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Enqueue in bulk."""
    body = json.dumps(PAYLOAD).encode()
    async with _queries(dsn) as queries:
        started = time.perf_counter()
        for at in range(0, options["jobs"], _BULK):
            n = min(_BULK, options["jobs"] - at)
            await queries.enqueue(["noop"] * n, [body] * n, [0] * n)
        return {"jobs_per_second": options["jobs"] / (time.perf_counter() - started)}


async def one(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Enqueue one per commit, one after the other."""
    body = json.dumps(PAYLOAD).encode()
    async with _queries(dsn) as queries:
        started = time.perf_counter()
        for _ in range(options["jobs"]):
            await queries.enqueue("noop", body)
        return {"jobs_per_second": options["jobs"] / (time.perf_counter() - started)}


async def send(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Enqueue one now and then."""
    sent: dict[str, float] = {}
    async with _queries(dsn) as queries:
        for n in range(options["jobs"]):
            await asyncio.sleep(random.uniform(*options["gap_seconds"]))
            await queries.enqueue("noop", str(n).encode())
            sent[str(n)] = time.time()
    return {"sent": sent}


async def work(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Be a worker."""
    stage = Stage()
    pause = options.get("sleep_ms", 0) / 1000
    slots = options.get("slots")
    done = 0
    async with asyncpg.create_pool(dsn, min_size=_POOL, max_size=_POOL) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        manager = QueueManager(queries)

        @manager.entrypoint("noop")  # type: ignore[untyped-decorator] # PgQueuer is not followed by mypy, see pyproject
        async def noop(job: Any) -> None:
            nonlocal done
            stage.handler_started()
            if options.get("note"):
                stage.starts[job.payload.decode()] = time.time()
            if pause:
                await asyncio.sleep(pause)
            done += 1

        await stage.ready()
        mode = QueueExecutionMode.continuous if options.get("note") else QueueExecutionMode.drain
        running = asyncio.ensure_future(
            manager.run(batch_size=slots // 2 if slots else _BATCH, max_concurrent_tasks=slots, mode=mode)
        )
        await stage.until_stopped(lambda: done)
        manager.shutdown.set()
        await running
        last = await queries.driver.fetch(
            "SELECT extract(epoch FROM max(created))::float8 AS at FROM pgqueuer_log WHERE status = 'successful'"
        )
    return stage.answer(done=done, last=last[0]["at"])


if __name__ == "__main__":
    perform({"install": install, "fill": fill, "one": one, "send": send, "work": work})
