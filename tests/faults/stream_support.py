"""What the stream scenarios share.

A database full of sessions, a real server process, a crowd of clients that write down what they
were sent, and counts from outside.

The crowd is the benchmark's: what it has seen is the oracle, beside what it stored itself.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.push.child import Crowd, session
from bench.push.lab import Served, fill, served
from bench.refresh.lab import migrate
from bench.server import Database
from livewell.db import scratch
from livewell.testing.sse_client import EventStream
from tests.faults.scenario import Scale


@dataclass(slots=True)
class Hall:
    """A server, and everybody who may come to it."""

    running: Served
    crowd: Crowd

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        """Ask the database from outside."""
        with psycopg.connect(self.running.database.dsn, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), params)
            return cursor.fetchall() if cursor.description else []

    def path(self, number: int) -> str:
        """The stream of the n-th session."""
        return f"/v1/sessions/{session(number)}/stream"

    async def stream(self, number: int, **options: Any) -> EventStream:
        """One more client."""
        base = options.pop("base", self.running.base)
        return await EventStream.open(base, self.path(number), key=self.running.key, **options)

    async def transactions(self) -> int:
        """Of this database, by the server's own count; it is told with a delay."""
        await asyncio.sleep(1.5)
        return int(self.rows("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")[0][0])


@asynccontextmanager
async def open_hall(
    scale: Scale,
    *,
    streams: int,
    others: int = 0,
    keys: int = 500,
    stream_keys: int = 20,
    silent_keys: int = 500,
    **changes: float,
) -> AsyncIterator[Hall]:
    """A database of its own and a server process; gone afterwards."""
    name = f"livewell_hall_{secrets.token_hex(4)}"
    dsn = await asyncio.to_thread(scratch.create, scale.server, name)
    try:
        await asyncio.to_thread(migrate, dsn)
        sizes = {
            "keys": keys,
            "sessions": streams + others,
            "streams": streams,
            "stream_keys": stream_keys,
            "silent_keys": silent_keys,
        }
        await asyncio.to_thread(lambda: fill(dsn, **sizes))
        with ExitStack() as stack:
            entering = served(Database(dsn, name, scale.server), "view", "subscribe", public=True, **changes)
            running = await asyncio.to_thread(stack.enter_context, entering)
            options = {"base": running.base, "key": running.key, "keys": keys, "streams": streams}
            yield Hall(running, Crowd(dsn, options))
    finally:
        await asyncio.to_thread(scratch.drop, scale.server, name)
