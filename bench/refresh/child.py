"""The program of every measured process: worker, watcher, bare loop.

A child program, see bench/stage.py.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson
import structlog

from bench.refresh.lab import CREDENTIAL, TYPE, settings, symbols
from bench.stage import Stage, perform
from livewell import Livewell
from livewell.refresh import task as refresher
from livewell.refresh.store.storer import Storer
from livewell.refresh.subscribe.subscriptions import Subscriptions

_SAMPLE_SECONDS_MAX = 10.0
_AT_ONCE = 20  # as many as a worker has slots

os.environ.setdefault(CREDENTIAL, "fake-bench")


class Clock:
    """How long awaited calls took, by name."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)

    def around(self, name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The same call, timed."""

        async def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return await call(*arguments, **options)
            finally:
                self.seconds[name] += time.perf_counter() - started
                self.calls[name] += 1

        return timed


async def work(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Be a worker as users run it, with its default settings."""
    stage, clock = Stage(), Clock()
    if options.get("timed"):
        for owner, name, title in (
            (refresher, "fetch", "fetch"),
            (Storer, "store", "store"),
            (Storer, "_call", "flush"),
        ):
            setattr(owner, name, clock.around(title, getattr(owner, name)))
    async with Livewell(settings(dsn)) as app:
        await stage.ready()
        began = time.process_time()
        worker = app.worker()
        running = asyncio.create_task(worker.run())
        await stage.until_stopped(lambda: worker.finished)
        cpu_seconds = time.process_time() - began
        worker.stop()
        await running
    return {
        "done": worker.finished,
        "cpu_seconds": cpu_seconds,
        "seconds": dict(clock.seconds),
        "calls": dict(clock.calls),
    }


async def watch(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Begin to watch a key that nobody knows, now and then.

    When it was asked for, when the subscription was answered, and when the value was seen.
    """
    subscribed: list[float] = []
    asked_of = Subscriptions.subscribe

    async def subscribe(*arguments: Any, **given: Any) -> Any:
        answer = await asked_of(*arguments, **given)
        subscribed.append(time.time())
        return answer

    Subscriptions.subscribe = subscribe  # type: ignore[method-assign] # the same call, and its end is noted
    samples = []
    async with Livewell(settings(dsn)) as app:
        for key in symbols(options["symbols"]):
            await asyncio.sleep(random.uniform(*options["gap_seconds"]))
            asked = time.time()
            async with asyncio.timeout(_SAMPLE_SECONDS_MAX):
                stream = app.watch(TYPE, [key])
                async for reading in stream:
                    if reading.value is not None:
                        break
                seen = time.time()
                await stream.aclose()
            samples.append({"key": key, "asked": asked, "subscribed": subscribed[-1], "seen": seen})
    return {"samples": samples}


async def bare(_: str, options: dict[str, Any]) -> dict[str, Any]:
    """Fetch and parse, and nothing else.

    As many at once as a worker has slots, so many keys in a call.
    """
    keys, together = symbols(options["symbols"]), options["together"]  # 20,000 do not fit into an argument
    left = iter([keys[start : start + together] for start in range(0, len(keys), together)])
    path, name = ("batch-quote", "symbols") if together > 1 else ("quote", "symbol")
    async with aiohttp.ClientSession(headers={"apikey": os.environ[CREDENTIAL]}) as session:

        async def caller() -> None:
            for some in left:
                async with session.get(f"{options['url']}/{path}", params={name: ",".join(some)}) as response:
                    rows = orjson.loads(await response.read())
                assert len(rows) == len(some)

        started = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(_AT_ONCE)))
        seconds = time.perf_counter() - started
    return {"refreshes_per_second": len(keys) / seconds, "cpu_seconds": time.process_time()}


if __name__ == "__main__":
    structlog.configure(processors=[], logger_factory=lambda *_: structlog.ReturnLogger())
    perform({"work": work, "watch": watch, "bare": bare})
