"""What runs beside the handlers of refresh jobs."""

from __future__ import annotations

import asyncio

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell import Settings
from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.limits import Walls
from livewell.outbound import Outbound
from livewell.refresh.task import RefreshTask
from livewell.testing.proxy import TcpProxy


async def test_a_database_that_is_away_at_the_start_is_waited_out(
    livewell_dsn: str, livewell_settings: Settings
) -> None:
    """Its first question goes unanswered, twice: it asks again, and the worker lives (F-B6)."""
    parts = conninfo_to_dict(livewell_dsn)
    async with TcpProxy(str(parts["host"]), int(str(parts["port"]))) as proxy:
        road = make_conninfo("", **{**parts, "host": "127.0.0.1", "port": proxy.port})
        database = Database(road, livewell_settings)
        await database.open()
        nudger = Nudger(database)
        refreshing = RefreshTask(
            database, nudger, outbound=Outbound.from_settings(livewell_settings), transforms={}, walls=Walls()
        )
        await database.call("SELECT 1")  # the pool has a connection, which will break
        proxy.reset_after(0, resets_max=2)
        running = asyncio.create_task(refreshing.run())
        ready = asyncio.create_task(refreshing._ready.wait())
        await asyncio.wait([running, ready], timeout=20, return_when=asyncio.FIRST_COMPLETED)
        ended, answered = running.done(), ready.done()
        for task in (running, ready):
            task.cancel()
        await asyncio.wait([running, ready])
        await nudger.close()
        await database.close()

    assert answered
    assert not ended
    assert proxy.counts.fired["reset_after"] >= 1
