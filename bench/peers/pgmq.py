"""pgmq: its SQL (from the PyPI package of that name) in a bare loop, for it has no worker.

Read 1000, delete them, two connections. A child program, see bench/stage.py.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import json
import time
from typing import Any

import asyncpg

from bench.payload import PAYLOAD
from bench.stage import Stage, perform
from bench.system import python_system

SYSTEM = python_system("pgmq", "bench.peers.pgmq", has_worker=False)

_BULK = 5000
_BATCH = 1000
_CONNECTIONS = 2
_BODY = json.dumps(PAYLOAD)


async def install(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run its install script, and make a queue."""
    del options
    script = importlib.resources.files("pgmq").joinpath("sql", "pgmq.sql").read_text()
    connection = await asyncpg.connect(dsn)
    await connection.execute(script)
    await connection.execute("SELECT pgmq.create('bench')")
    await connection.close()
    return {}


async def fill(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Send in bulk."""
    connection = await asyncpg.connect(dsn)
    started = time.perf_counter()
    for at in range(0, options["jobs"], _BULK):
        await connection.execute(
            "SELECT pgmq.send_batch('bench', $1::jsonb[])", [_BODY] * min(_BULK, options["jobs"] - at)
        )
    seconds = time.perf_counter() - started
    await connection.close()
    return {"jobs_per_second": options["jobs"] / seconds}


async def one(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Send one per commit, one after the other."""
    connection = await asyncpg.connect(dsn)
    started = time.perf_counter()
    for _ in range(options["jobs"]):
        await connection.execute("SELECT pgmq.send('bench', $1::jsonb)", _BODY)
    seconds = time.perf_counter() - started
    await connection.close()
    return {"jobs_per_second": options["jobs"] / seconds}


async def work(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Read and delete until nothing is left."""
    del options
    stage = Stage()
    done = 0
    last: float | None = None

    async def loop(connection: Any) -> None:
        nonlocal done, last
        while rows := await connection.fetch("SELECT msg_id, message FROM pgmq.read('bench', 60, $1)", _BATCH):
            stage.handler_started()
            await connection.execute("SELECT pgmq.delete('bench', $1::bigint[])", [row["msg_id"] for row in rows])
            done += len(rows)
            last = time.time()

    connections = [await asyncpg.connect(dsn) for _ in range(_CONNECTIONS)]
    await stage.ready()
    running = asyncio.gather(*map(loop, connections))
    await stage.until_stopped(lambda: done)
    await running
    for connection in connections:
        await connection.close()
    return stage.answer(done=done, last=last)


if __name__ == "__main__":
    perform({"install": install, "fill": fill, "one": one, "work": work})
