"""Contract 19: one process, one pool.

A worker imports its handlers and calls no function over the network (R18).

Broken once, and kept broken below: a module that imports an HTTP client, one that opens a second
pool, and a worker whose jobs each open an app of their own.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import livewell
from livewell import Livewell, Settings
from livewell.testing import opened
from livewell.testing.processes import eventually_async
from tests.support.queue_sql import QueueSession
from tests.support.source import parse

SOURCE = Path(livewell.__file__).parent
WORKER_CODE = [SOURCE / "app.py", SOURCE / "queue", SOURCE / "db"]
CLIENTS = {
    *("aiohttp", "boto3", "botocore", "celery", "grpc", "httpcore", "httpx", "kombu", "pika", "redis", "requests"),
    *(
        "urllib3",
        "websocket",
        "websockets",
        "xmlrpc",
        "zmq",
        "http",
        "ftplib",
        "smtplib",
        "telnetlib",
        "urllib.request",
    ),
}
POOLS = {"AsyncConnectionPool", "ConnectionPool", "AsyncNullConnectionPool", "NullConnectionPool"}
# Beside the pool: exchange, upkeep, keeper, listener, nudger, scheduler, the due check and the
# claims of limited queues have a connection each, so that handlers can empty the pool without
# stopping the worker.
CONNECTIONS_OF_ITS_OWN = 8


def files() -> Iterator[Path]:
    for place in WORKER_CODE:
        yield from sorted(place.rglob("*.py")) if place.is_dir() else [place]


def clients_in(source: str) -> set[str]:
    """Network clients that a module imports, wherever in it."""
    imported: set[str] = set()
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            imported.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
    return {name for name in imported if name in CLIENTS or name.split(".")[0] in CLIENTS}


def pools_in(source: str) -> int:
    """How many places of a module make a pool."""
    calls = (node for node in ast.walk(parse(source)) if isinstance(node, ast.Call))
    names = (call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "") for call in calls)
    return sum(name in POOLS for name in names)


def test_worker_code_imports_no_network_client() -> None:
    """Handlers may do what they like; the worker itself speaks only to Postgres."""
    assert {file.name: found for file in files() if (found := clients_in(file.read_text()))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import httpx",
        "from urllib import request",
        "import urllib.request as r",
        "def f():\n    from http.client import HTTPConnection",
    ],
)
def test_an_imported_client_is_noticed(source: str) -> None:
    """Broken on purpose."""
    assert clients_in(source) != set()


def test_one_place_makes_a_pool() -> None:
    """Database.open(), and nothing else."""
    assert {str(file.relative_to(SOURCE)): n for file in files() if (n := pools_in(file.read_text()))} == {
        "db/database.py": 1
    }


def test_a_second_pool_is_noticed() -> None:
    """Broken on purpose."""
    assert pools_in("import psycopg_pool\npool = psycopg_pool.AsyncConnectionPool('')") == 1


class Crowd:
    """A task that opens transactions, forty at once, and waits inside until the test has counted connections."""

    def __init__(self, settings: Settings, *, app_per_job: bool) -> None:
        self.app = Livewell(Settings())
        self.inside = 0
        self.counted = asyncio.Event()

        @self.app.task(queue="work")
        async def hold() -> None:
            other = Livewell(Settings())
            if app_per_job:
                await other.open(settings=settings)
            try:
                async with (other if app_per_job else self.app).transaction() as tx:
                    await tx.execute("SELECT 1")
                    self.inside += 1
                    await self.counted.wait()
            finally:
                await other.close()

        self.hold = hold


async def connections_of_a_busy_worker(settings: Settings, dsn: str, *, app_per_job: bool) -> int:
    """How many the server sees while every connection of the pool is in use."""
    crowd = Crowd(settings, app_per_job=app_per_job)
    with QueueSession(dsn) as observer:
        async with opened(crowd.app, settings):
            await crowd.hold.enqueue_many([{} for _ in range(40)])
            worker = crowd.app.worker(slots=40)
            working = asyncio.create_task(worker.run())
            await eventually_async(lambda: crowd.inside >= settings.pool_size_max, timeout=30)
            n = observer.value(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name "
                "= 'livewell'"
            )
            crowd.counted.set()
            worker.stop()
            await working
    return int(n)


async def test_a_worker_has_one_pool_and_a_few_connections_of_its_own(
    livewell_settings: Settings, livewell_dsn: str
) -> None:
    """Forty jobs with a transaction each, and never more than the pool and those eight."""
    settings = livewell_settings.model_copy(update={"pool_size_max": 6, "pool_wait_seconds": 30})

    n = await connections_of_a_busy_worker(settings, livewell_dsn, app_per_job=False)

    assert settings.pool_size_max < n <= settings.pool_size_max + CONNECTIONS_OF_ITS_OWN


async def test_a_pool_per_job_is_noticed(livewell_settings: Settings, livewell_dsn: str) -> None:
    """Broken on purpose: handlers that open an app of their own."""
    settings = livewell_settings.model_copy(update={"pool_size_max": 6, "pool_wait_seconds": 30})

    n = await connections_of_a_busy_worker(settings, livewell_dsn, app_per_job=True)

    assert n > settings.pool_size_max + CONNECTIONS_OF_ITS_OWN
