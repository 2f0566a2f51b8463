"""Drain no-op jobs with one Livewell worker process. A child of bench.queue: prints one JSON line.

Timed from the first handler's start to the last finish that the database acknowledged (its own timestamp).
"""

import asyncio
import json
import sys
import time

import structlog
import uvloop
from pydantic import SecretStr

from bench.payload import PAYLOAD
from livewell import Livewell, Settings

_BULK = 5000


async def main(dsn: str, jobs: int) -> None:
    """Enqueue, drain, report."""
    app = Livewell(Settings(database_url=SecretStr(dsn)))
    first: list[float] = []

    @app.task(queue="bench")
    async def noop(text: str) -> None:
        del text
        if not first:
            first.append(time.time())

    await app.open(apply_migrations=True)
    started = time.perf_counter()
    for _ in range(0, jobs, _BULK):
        await noop.enqueue_many([PAYLOAD] * _BULK)
    enqueue_seconds = time.perf_counter() - started
    await app.database.call("CHECKPOINT")
    wal = (await app.database.call("SELECT pg_current_wal_lsn() - '0/0'"))[0][0]
    worker = app.worker()
    running = asyncio.create_task(worker.run())
    while worker.finished < jobs:  # noqa: ASYNC110 - the worker's own code stays as users run it; the clock is the database's, so this may be late
        await asyncio.sleep(0.02)
    worker.stop()
    await running
    rows = await app.database.call(
        "SELECT count(*), extract(epoch FROM max(finished_at))::float8, pg_current_wal_lsn() - '0/0' FROM livewell.job_history"
    )
    done, last, wal_end = rows[0]
    await app.close()
    print(
        json.dumps(
            {
                "jobs": done,
                "jobs_per_second": done / (last - first[0]),
                "enqueue_per_second": jobs / enqueue_seconds,
                "wal_bytes_per_job": float(wal_end - wal) / done,
                "calls_per_job": worker.calls / done,
            }
        )
    )


if __name__ == "__main__":
    structlog.configure(processors=[], logger_factory=lambda *_: structlog.ReturnLogger())
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
