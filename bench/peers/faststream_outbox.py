"""faststream-outbox at its best settings: asyncpg, LISTEN, fetches of 1000, deletes in batches.

A child program, see bench/stage.py.

The settings are those with the highest pace of a grid on two cores: one worker or several, fetches
of 100 to 5000, flushes of 100 to 1000. Types are not validated and nothing is logged. A drain ends
when its table is empty; the deletes of the last batch are thus within the time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from faststream_outbox import OutboxBroker, make_outbox_table
from sqlalchemy import MetaData, Table, func, select
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bench.payload import PAYLOAD
from bench.stage import Stage, perform
from bench.system import python_system

SYSTEM = python_system("faststream-outbox", "bench.peers.faststream_outbox")

_BULK = 1000
_FETCH = 1000
_WORKERS = 1
_FLUSH = 500
_QUEUE = "orders.created"


@asynccontextmanager
async def _engine(dsn: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(dsn.replace("postgresql://", "postgresql+asyncpg://", 1), pool_size=_WORKERS + 4)
    yield engine
    await engine.dispose()


def _table() -> tuple[MetaData, Table]:
    metadata = MetaData()
    return metadata, make_outbox_table(metadata, table_name="outbox")


async def install(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Create its table, as its factory declares it."""
    del options
    metadata, _ = _table()
    async with _engine(dsn) as engine, engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
    return {}


async def fill(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Publish in bulk."""
    _, table = _table()
    async with _engine(dsn) as engine:
        broker = OutboxBroker(engine, outbox_table=table, logger=None, apply_types=False)
        await broker.connect()
        started = time.perf_counter()
        for at in range(0, options["jobs"], _BULK):
            async with engine.begin() as connection:
                bodies = [PAYLOAD] * min(_BULK, options["jobs"] - at)
                await broker.publish_batch(*bodies, queue=_QUEUE, session=connection)
        seconds = time.perf_counter() - started
        await broker.stop()
    return {"jobs_per_second": options["jobs"] / seconds}


async def work(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Relay to nowhere until its table is empty."""
    stage, done = Stage(), 0
    last: float | None = None
    _, table = _table()
    async with _engine(dsn) as engine:
        broker = OutboxBroker(engine, outbox_table=table, logger=None, apply_types=False)

        @broker.subscriber(  # type: ignore[untyped-decorator] # faststream-outbox is not followed by mypy, see pyproject
            _QUEUE,
            max_workers=options.get("workers", _WORKERS),
            fetch_batch_size=options.get("fetch", _FETCH),
            terminal_flush_batch_size=options.get("flush", _FLUSH),
            min_fetch_interval=0.01,
        )
        async def relay(body: dict[str, str]) -> None:
            nonlocal done
            del body
            stage.handler_started()
            done += 1

        await stage.ready()
        await broker.start()
        stopping = asyncio.create_task(stage.until_stopped(lambda: done))
        async with engine.connect() as connection:
            while not stopping.done():
                if last is None and done >= options.get("jobs", 1) and not await _left(connection, table):
                    last = time.time()
                await asyncio.sleep(0.01)
        await broker.stop()
        async with engine.connect() as connection:
            assert not await _left(connection, table)
    return stage.answer(done=done, last=last or time.time())


async def _left(connection: Any, table: Table) -> int:
    left: int = (await connection.execute(select(func.count()).select_from(table))).scalar_one()
    await connection.rollback()
    return left


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    perform({"install": install, "fill": fill, "work": work})
