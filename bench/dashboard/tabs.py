"""What ten open live tabs cost a worker: drains with and without them, in turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.children import ask
from bench.line import Check, Contender, Line
from bench.measure import Figures, installed, work_off
from bench.operations.lab import Lab
from bench.push.lab import Served, served
from bench.system import LIVEWELL
from livewell.testing.sse_client import EventStream

_JOBS = 40_000
_TABS = ("/", "/", "/work", "/work/jobs", "/types", "/limits", "/dead", "/schedules", "/alerts", "/audit")


def _drain(lab: Lab, *, watched: bool) -> Figures:
    with lab.server.database(installed(lab.server, LIVEWELL)) as database:
        ask(LIVEWELL, "fill", database.dsn, jobs=_JOBS)
        database.checkpoint()
        with served(database, "operate", "view") as running, _tabs(running, _TABS if watched else ()):
            pace = work_off(database, LIVEWELL, jobs=_JOBS)
            return {"jobs_per_second": pace, "rss_mb": running.rss_mb()}


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
)
