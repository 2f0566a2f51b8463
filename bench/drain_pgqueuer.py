"""Drain no-op jobs with one PgQueuer process at its best settings (batch 500, asyncpg pool of 4, uvloop). Prints one JSON line.

Timed like drain_livewell: from the first handler's start to the last finish in its log table.
"""

import json
import sys
import time
from typing import Any

import asyncpg
import uvloop
from pgqueuer.core.qm import QueueManager
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.payload import PAYLOAD

_BULK = 5000
_BATCH = 500
_POOL = 4


async def main(dsn: str, jobs: int) -> None:
    """Enqueue, drain, report."""
    pool = await asyncpg.create_pool(dsn, min_size=_POOL, max_size=_POOL)
    queries = Queries(AsyncpgPoolDriver(pool))
    await queries.install()
    body = json.dumps(PAYLOAD).encode()
    started = time.perf_counter()
    for _ in range(0, jobs, _BULK):
        await queries.enqueue(["noop"] * _BULK, [body] * _BULK, [0] * _BULK)
    enqueue_seconds = time.perf_counter() - started
    first: list[float] = []
    manager = QueueManager(queries)

    @manager.entrypoint("noop")  # type: ignore[untyped-decorator] # PgQueuer is not followed by mypy, see pyproject
    async def noop(job: Any) -> None:
        del job
        if not first:
            first.append(time.time())

    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as observer:
        await observer.execute("CHECKPOINT")
        wal = await observer.fetchval("SELECT pg_current_wal_lsn() - '0/0'")
        await manager.run(batch_size=_BATCH, mode=QueueExecutionMode.drain)
        done, last, wal_end = await observer.fetchrow(
            "SELECT count(*), extract(epoch FROM max(created))::float8, pg_current_wal_lsn() - '0/0'"
            " FROM pgqueuer_log WHERE status = 'successful'"
        )
    print(
        json.dumps(
            {
                "jobs": done,
                "jobs_per_second": done / (last - first[0]),
                "enqueue_per_second": jobs / enqueue_seconds,
                "wal_bytes_per_job": float(wal_end - wal) / done,
            }
        )
    )


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
