"""One who looks at pages that the database is slow to answer does not make the pages of others fail."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from urllib.parse import quote

import psycopg

from livewell.server.looks import Looks
from livewell.settings import Settings
from livewell.shares import Client
from livewell.testing.processes import eventually_async
from livewell.testing.sse_client import EventStream
from tests.support.http import Web

SLOW = 4  # pages, each with several panels that wait for a lock until the server ends them
PAGES, OTHERS, TURNS = 6, 5, 2
# Of this table of this database: other tests wait for locks of the same server.
WAITING = """SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE NOT l.granted AND d.datname = current_database() AND l.relation = 'livewell.dead_job'::regclass"""


async def test_a_client_with_many_slow_pages_leaves_half_of_the_connections(market: Web) -> None:
    """Two of its statements at a time, and a page of somebody else meanwhile. Seen failing: three and four."""
    greedy, calm = market.as_key("operate", "view"), market.as_key("operate", "view")
    seen = set()
    with psycopg.connect(market.dsn) as holder:
        holder.execute("LOCK TABLE livewell.dead_job IN ACCESS EXCLUSIVE MODE")
        asked = [asyncio.create_task(greedy.get("/dead")) for _ in range(SLOW)]
        while not all(one.done() for one in asked):
            seen.add(market.rows(WAITING)[0][0])
            page = await calm.get("/audit")
            assert page.status_code == 200
            assert 'data-state="failed"' not in page.text
        holder.rollback()
    assert max(seen) == 2
    page = await greedy.get("/dead")
    assert 'data-state="failed"' not in page.text


async def test_a_client_that_follows_slow_pages_leaves_the_others_live(wire: Web) -> None:
    """One page of theirs is painted at a time, however many they follow; tabs of many others are told all the while.

    Seen failing without the places: six statements waited, for four connections.
    """
    seen: set[int] = set()
    async with AsyncExitStack() as tabs:

        async def follow(key: str, page: str) -> EventStream:
            path = f"/v1/pages/stream?page={quote(page, safe='')}"
            return await tabs.enter_async_context(await EventStream.open(wire.base, path, key=key))

        with psycopg.connect(wire.dsn) as holder:
            holder.execute("LOCK TABLE livewell.dead_job IN ACCESS EXCLUSIVE MODE")
            greedy = wire.key("operate").text
            slow = [await follow(greedy, f"/dead?queue=q{n}") for n in range(PAGES)]
            await eventually_async(lambda: wire.rows(WAITING)[0][0] > 0, timeout=10, what="a statement to wait")
            for stream in [await follow(wire.key("operate").text, page) for page in ("/audit", "/acts") * OTHERS]:
                for _ in range(TURNS):
                    _, document = await stream.next("panel", "seen", "failed")
                    assert 'data-state="failed"' not in document.get("html", "")
                    seen.add(wire.rows(WAITING)[0][0])
            holder.rollback()
        for stream in slow:
            while 'data-state="data"' not in (await stream.next("panel"))[1]["html"]:
                pass  # each has its turn
    assert max(seen) == 1


async def test_nothing_is_kept_of_a_client_that_has_gone(livewell_settings: Settings) -> None:
    """Whether its look ended well, failed, or was given up while it waited."""
    looks, client = Looks("postgresql://nowhere", livewell_settings), Client("a", stranger=False)

    async def look(done: asyncio.Event) -> None:
        async with looks.shares.take(client):
            await done.wait()

    done = asyncio.Event()
    tasks = [asyncio.create_task(look(done)) for _ in range(4)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    done.set()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert looks.shares.is_idle
