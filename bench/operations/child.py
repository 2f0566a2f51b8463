"""The program of every measured process.

A worker with one schedule, whose handler writes down each slot. A child program, see
bench/stage.py.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import structlog
from pydantic import SecretStr

from bench.stage import Stage, perform
from livewell import Livewell, Settings
from livewell.schedule.definition import Run
from livewell.testing.history import AppendLog


async def work(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Be a worker as users run it.

    A line of the log: slot and start in seconds since 1970, and who. While the file `hold` exists
    runs do not end.
    """
    stage, log, hold = Stage(), AppendLog(Path(options["log"])), Path(options["hold"])
    lease = options["lease_seconds"]
    settings = Settings(database_url=SecretStr(dsn), lease_seconds=lease, heartbeat_seconds=min(5.0, lease / 6))
    app, done = Livewell(settings), 0

    @app.schedule(every=options["every_seconds"], missed="all", timeout="5m")
    async def tick(run: Run) -> None:
        nonlocal done
        log.append(f"{run.due_at.timestamp():.6f} {time.time():.6f} {os.getpid()}")
        while hold.exists():  # noqa: ASYNC110, ASYNC240 - another process decides
            await asyncio.sleep(0.005)
        done += 1

    async with app:
        await stage.ready()
        worker = app.worker()
        running = asyncio.create_task(worker.run())
        await stage.until_stopped(lambda: done)
        worker.stop()
        await running
    return {"done": done}


if __name__ == "__main__":
    structlog.configure(processors=[], logger_factory=lambda *_: structlog.ReturnLogger())
    perform({"work": work})
