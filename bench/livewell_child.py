"""Livewell as it is measured: the settings are the defaults, the worker is the one users run.

A child program, see bench/stage.py.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import structlog
from pydantic import SecretStr

from bench.payload import PAYLOAD
from bench.stage import Stage, perform
from livewell import Livewell, Settings
from livewell.cli.commands.worker import settle_memory
from livewell.queue.task import Task

_BULK = 5000
_GROUP_LIMIT = 1


def make_app(dsn: str, stage: Stage, options: dict[str, Any]) -> tuple[Livewell, Task[Any, Any]]:
    """The app of the comparison.

    A task that does nothing, or sleeps, or notes when it was started.
    """
    app = Livewell(Settings(database_url=SecretStr(dsn)))
    if options.get("group"):
        policy: dict[str, Any] = {
            "group_limit": _GROUP_LIMIT
        }  # a version without it never comes here, see lines/crowd.py
        app.queue("bench", **policy)
    pause = options.get("sleep_ms", 0) / 1000

    async def noop(text: str) -> None:
        del text
        stage.handler_started()

    async def sleep(text: str) -> None:
        del text
        stage.handler_started()
        await asyncio.sleep(pause)

    async def note(text: str) -> None:
        stage.starts[text] = time.time()

    handler = note if options.get("note") else sleep if pause else noop
    return app, app.task(queue=options.get("queue", "bench"), name="noop")(handler)


async def install(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Migrate, and declare the queue."""
    app, _ = make_app(dsn, Stage(), options)
    await app.open(apply_migrations=True)
    await app.close()
    return {}


async def fill(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Enqueue in bulk."""
    app, task = make_app(dsn, Stage(), options)
    if options.get("delay_seconds"):
        task = task.options(delay=options["delay_seconds"])
    if options.get("group"):
        task = task.options(group=options["group"])
    async with app:
        started = time.perf_counter()
        for at in range(0, options["jobs"], _BULK):
            await task.enqueue_many([PAYLOAD] * min(_BULK, options["jobs"] - at))
        return {"jobs_per_second": options["jobs"] / (time.perf_counter() - started)}


async def one(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Enqueue one per commit, one after the other."""
    app, task = make_app(dsn, Stage(), options)
    async with app:
        started = time.perf_counter()
        for _ in range(options["jobs"]):
            await task.enqueue(text=PAYLOAD["text"])
        return {"jobs_per_second": options["jobs"] / (time.perf_counter() - started)}


async def send(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Enqueue one now and then; the moment counts at which we know that it is committed."""
    app, task = make_app(dsn, Stage(), options)
    sent: dict[str, float] = {}
    async with app:
        for n in range(options["jobs"]):
            await asyncio.sleep(random.uniform(*options["gap_seconds"]))
            await task.enqueue(text=str(n))
            sent[str(n)] = time.time()
        await asyncio.sleep(0.1)  # closing at once would forget the last nudge
    return {"sent": sent}


async def work(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Be a worker."""
    stage = Stage()
    app, _ = make_app(dsn, stage, options)
    async with app:
        settle_memory()  # as `livewell worker` does
        await stage.ready()
        worker = app.worker(slots=options.get("slots"))
        running = asyncio.create_task(worker.run())
        await stage.until_stopped(lambda: worker.finished)
        worker.stop()
        await running
        rows = await app.database.call(
            "SELECT extract(epoch FROM max(finished_at))::float8 FROM livewell.job_history WHERE queue = 'bench'"
        )
    return stage.answer(done=worker.finished, last=rows[0][0])


async def take(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Claim jobs for a worker that lives elsewhere and goes on holding them."""
    app, _ = make_app(dsn, Stage(), options)
    taken = 0
    async with app:
        rows = await app.database.call(
            "SELECT livewell.register_worker('elsewhere', '0', '{bench}', '{noop}', 1, 3600)"
        )
        while taken < options["jobs"]:
            claim = "claim_limited(%s, 'bench', %s)" if options.get("group") else "claim_jobs(%s, '{bench}', %s)"
            claimed = await app.database.call(
                f"SELECT id FROM livewell.{claim} WHERE id IS NOT NULL",  # noqa: S608 - one of two
                (rows[0][0], min(1000, options["jobs"] - taken)),
            )
            if not claimed:
                break
            taken += len(claimed)
    return {"taken": taken}


if __name__ == "__main__":
    structlog.configure(processors=[], logger_factory=lambda *_: structlog.ReturnLogger())
    perform({"install": install, "fill": fill, "one": one, "send": send, "work": work, "take": take})
