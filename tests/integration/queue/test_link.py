"""A link's calls end, whatever becomes of its connection (Q16), on the loop that workers run on."""

from __future__ import annotations

import asyncio

import psycopg
import uvloop

from livewell.db.link import Link
from livewell.errors import DatabaseUnavailable

LINKS = 6
ROUNDS = 100
ASKS = 10_000
PATIENCE_SECONDS = 10


def test_calls_end_though_the_server_cuts_their_connections(livewell_dsn: str) -> None:
    """A call ends when its connection is cut, though uvloop tells of that only once.

    uvloop forgets a socket after the wake that tells of its end, and that wake may find only the
    server's last words. Without a second look, calls hung here for ever (F-B2, F-B6).
    """

    async def asks(link: Link) -> None:
        for _ in range(ASKS):
            try:
                await link.ask("SELECT $1::int", ["1"])
            except DatabaseUnavailable:
                return
        raise AssertionError(f"nobody cut the connection during {ASKS} calls")

    async def scenario() -> None:
        links = [Link(livewell_dsn, call_seconds=2, connect_seconds=5, prepare=True) for _ in range(LINKS)]
        async with await psycopg.AsyncConnection.connect(livewell_dsn, autocommit=True) as killer:
            for _ in range(ROUNDS):
                async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as asking:
                    for link in links:
                        await link.ask("SELECT 1 + $1::int", ["1"])
                        asking.create_task(asks(link))
                    await killer.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
        for link in links:
            await link.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
