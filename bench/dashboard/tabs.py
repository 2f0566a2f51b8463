"""What ten open live tabs cost: a worker that drains a queue, the due check, and the server's memory.

Drains and due checks with and without tabs come in turn. For the memory the tabs stay open for half
an hour while something on their pages changes several times a second.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.children import ask
from bench.line import Check, Contender, Line
from bench.measure import Figures, installed, work_off
from bench.operations.lab import Lab
from bench.operations.state import crowded as crowded_state
from bench.push.lab import Served, served
from bench.refresh import due
from bench.refresh.lab import Lab as RefreshLab
from bench.refresh.sizes import Sizes as RefreshSizes
from bench.system import LIVEWELL
from livewell.testing.sse_client import EventStream

_JOBS = 400_000  # some seconds: tabs ask once in two
_CHECKS = 200  # more than alone: tabs ask once in two seconds
_SETTLE_SECONDS = 10.0  # who looks first has the plan and the doctor asked, for a second or two
_CHANGE_SECONDS = 0.2
_CHANGES = (
    "UPDATE livewell.job SET progress = (progress + 1) % 100 WHERE id BETWEEN 1 AND 50",
    "SELECT livewell.warn('bench', 'a thing that is tolerated', NULL)",
    "SELECT livewell.record_act('bench', 'bench.act', 'nothing', '{}', 'done')",
)
_TABS = ("/", "/", "/work", "/work/jobs", "/types", "/limits", "/dead", "/schedules", "/alerts", "/audit")


def _drain(lab: Lab, *, watched: bool) -> Figures:
    with lab.server.database(installed(lab.server, LIVEWELL)) as database:
        ask(LIVEWELL, "fill", database.dsn, jobs=_JOBS)
        database.checkpoint()
        with served(database, "operate", "view") as running, _tabs(running, _TABS if watched else ()):
            time.sleep(_SETTLE_SECONDS)
            pace = work_off(database, LIVEWELL, jobs=_JOBS)
            return {"jobs_per_second": pace, "rss_mb": running.rss_mb()}


def _due(lab: Lab, *, watched: bool) -> Figures:
    sizes = RefreshSizes(sessions=lab.sizes.sessions, keys=lab.sizes.keys, checks=_CHECKS)
    template = due.crowded(RefreshLab(lab.server, sizes, lab.folder, lab.say))
    with (
        lab.server.database(template) as database,
        served(database, "operate", "view") as running,
        _tabs(running, _TABS if watched else ()),
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        time.sleep(_SETTLE_SECONDS)
        return due.sampled(connection, _CHECKS)


def _memory(lab: Lab) -> Figures:
    """The server's memory after a third of the time, and how much more it is at the end."""
    with (
        lab.server.database(crowded_state(lab)) as database,
        served(database, "operate", "view") as running,
        _tabs(running, _TABS),
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        begun, early = time.monotonic(), 0.0
        while (passed := time.monotonic() - begun) < lab.sizes.memory_seconds:
            for statement in _CHANGES:
                connection.execute(statement.encode())
            if not early and passed > lab.sizes.memory_seconds / 3:
                early = running.rss_mb()
            time.sleep(_CHANGE_SECONDS)
        late = running.rss_mb()
    return {"rss_mb": late, "grown_mb": late - (early or late)}


@contextmanager
def _tabs(running: Served, pages: tuple[str, ...]) -> Iterator[None]:
    """Tabs that stay open during the block, each with a stream of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def open_all() -> list[EventStream]:
        paths = [f"/v1/pages/stream?page={page}" for page in pages]
        return [await EventStream.open(running.base, path, key=running.key) for path in paths]

    streams = asyncio.run_coroutine_threadsafe(open_all(), loop).result(30)
    refused = [stream.status for stream in streams if stream.status != 200]
    if refused:
        raise RuntimeError(f"tabs were refused: {refused}")
    try:
        yield
    finally:

        async def close_all() -> None:
            for stream in streams:
                stream.close()

        asyncio.run_coroutine_threadsafe(close_all(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


LINES: tuple[Line[Lab], ...] = (
    Line(
        "tabs",
        "jobs a second while ten live tabs are open, against none",
        (Check("tabs", "jobs_per_second", 0.95, against="no tabs"),),
        lambda lab: [
            Contender("livewell", lambda: _drain(lab, watched=True)),
            Contender("no tabs", lambda: _drain(lab, watched=False)),
        ],
    ),
    Line(
        "tabs-due",
        "due checks a second while ten live tabs are open, against none",
        (Check("tabs-due", "checks_per_second", 0.9, against="no tabs"),),
        lambda lab: [
            Contender("livewell", lambda: _due(lab, watched=True)),
            Contender("no tabs", lambda: _due(lab, watched=False)),
        ],
    ),
    Line(
        "memory",
        "what the server's memory grows by in the last two thirds of half an hour with ten live tabs",
        (Check("memory", "grown_mb", 10.0, at_most=True), Check("memory/rss", "rss_mb", None, at_most=True)),
        lambda lab: [Contender("livewell", lambda: _memory(lab), every_pair=False)],
    ),
)
