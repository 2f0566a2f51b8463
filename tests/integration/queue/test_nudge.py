"""Nudges, as they go over the wire."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from livewell import Settings
from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.errors import DatabaseUnavailable


class Wire:
    """Stands in for the connection: what was sent, and when."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, float]] = []
        self.broken = False
        self._calls: asyncio.Queue[list[str]] = asyncio.Queue()

    async def ask(self, _: str, params: tuple[str, str]) -> None:
        names = params[1].strip("{}").replace('"', "").split(",")
        self._calls.put_nowait(names)
        if self.broken:
            raise DatabaseUnavailable("away")
        self.sent += [(name, time.monotonic()) for name in names]

    async def close(self) -> None:
        pass

    async def next(self) -> list[str]:
        """The names of the next call."""
        return await asyncio.wait_for(self._calls.get(), 5)


@asynccontextmanager
async def nudging(nudge_ms: float) -> AsyncIterator[tuple[Nudger, Wire]]:
    nudger = Nudger(Database("dbname=nobody", Settings(nudge_ms=nudge_ms)))
    wire = Wire()
    nudger._link = wire  # type: ignore[assignment] # no database is needed
    yield nudger, wire
    await nudger.close()


async def test_the_nudge_of_one_name_does_not_wait_for_the_interval_of_another() -> None:
    """A value that is stored right after its job was queued is told at once.

    Seen to fail with one interval for all names.
    """
    async with nudging(1000) as (nudger, wire):
        began = time.monotonic()
        nudger.nudge("queue")
        assert await wire.next() == ["queue"]
        nudger.nudge("changed")
        assert await wire.next() == ["changed"]
        assert time.monotonic() - began < 0.9


async def test_a_name_is_sent_once_at_the_start_and_once_in_each_interval() -> None:
    """However often it is nudged, and the last one is not forgotten."""
    async with nudging(50) as (nudger, wire):
        began = time.monotonic()
        while time.monotonic() - began < 0.2:
            nudger.nudge("queue")
            last = time.monotonic()
            await asyncio.sleep(0.001)
        while wire.sent[-1][1] < last:
            await wire.next()
        gaps = [after - before for (_, before), (_, after) in itertools.pairwise(wire.sent)]
        assert min(gaps) >= 0.049


async def test_closing_sends_what_waits() -> None:
    """A script that enqueues twice and ends does not cost its second job a poll interval."""
    async with nudging(1000) as (nudger, wire):
        nudger.nudge("queue")
        await wire.next()
        nudger.nudge("queue")
        began = time.monotonic()
        await nudger.close()
        assert [name for name, _ in wire.sent] == ["queue", "queue"]
        assert time.monotonic() - began < 0.9


async def test_a_nudge_that_cannot_be_sent_is_counted_and_forgotten() -> None:
    """Polling is the guarantee; the next one is sent again."""
    async with nudging(1) as (nudger, wire):
        wire.broken = True
        nudger.nudge("queue")
        await wire.next()
        wire.broken = False
        nudger.nudge("queue")
        await wire.next()
        assert (nudger.failed, nudger.sent) == (1, 1)
