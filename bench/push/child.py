"""The programs of the push benchmark: the server, and everybody who connects to it.

A child program, see bench/stage.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import resource
import time
import uuid
from typing import Any

import aiohttp
import orjson
import structlog

from bench.push.lab import TYPE, settings
from bench.refresh.lab import CREDENTIAL, symbols
from bench.stage import Stage, perform
from livewell.cli.commands.worker import settle_memory
from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.refresh.nudges import CHANGED
from livewell.server.app import create_app, gated
from livewell.server.pools import addresses
from livewell.server.process import ServerProcess
from livewell.server.serve import HttpServer, bind
from livewell.testing.sse_client import EventStream

_STORE = """
WITH written AS (UPDATE livewell_data.quote q SET at = %s WHERE q.key = %s)
UPDATE livewell.ledger l SET version = l.version + 1, status_version = l.status_version + 1, status_at = livewell.now(), fetched_at = livewell.now(), checked_at = livewell.now(), source_at = livewell.now()
WHERE l.data_type = 'quote' AND l.key = %s
"""
_CHANGES_PER_SECOND = 100
_CONNECT_AT_ONCE = 100
_GIVE_UP_SECONDS = 60.0

os.environ.setdefault(CREDENTIAL, "fake-bench")


async def serve(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """The server, until told to stop."""
    stage, given = Stage(), settings(dsn, options["port"], **options["changes"])
    async with ServerProcess(addresses(given), given) as state:
        server = HttpServer(gated(create_app(), state), state, bind("127.0.0.1", options["port"]))
        settle_memory()  # as `livewell serve` does
        running = asyncio.create_task(server.run())
        await stage.ready()
        await stage.until_stopped(lambda: state.streams.dropped)
        server.stop()
        await running
    return {"events": state.streams.events, "dropped": state.streams.dropped, "cpu_seconds": time.process_time()}


def session(number: int) -> str:
    """The id of the n-th session, as the database was filled."""
    return str(uuid.UUID(hashlib.md5(f"s{number}".encode()).hexdigest()))  # noqa: S324 - a name, no secret


class Client:
    """One stream that is read, and what came of it."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd = crowd
        self._path = f"/v1/sessions/{session(number)}/stream"
        self.ready = asyncio.Event()
        self.has: dict[str, float] = {}
        self.stream: EventStream | None = None

    async def connect(self) -> None:
        """Begin, or begin again."""
        self.ready.clear()
        self.stream = await EventStream.open(self._crowd.base, self._path, key=self._crowd.key, on_event=self._hear)
        if self.stream.status != 200:
            raise RuntimeError(f"{self.stream.status} {self.stream.body!r}")

    def _hear(self, name: str, data: bytes) -> None:
        if name == "ready":
            self.ready.set()
        elif name == "reading":
            reading = orjson.loads(data)
            if "value" in reading:
                at = reading["value"]["at"]
                self.has[reading["key"]] = at
                if self.ready.is_set():
                    self._crowd.waits.append(time.time() - at)


class Crowd:
    """All clients, and the hand that stores."""

    def __init__(self, dsn: str, options: dict[str, Any]) -> None:
        self.base, self.key = options["base"], options["key"]
        self.waits: list[float] = []
        self.stored: dict[str, float] = {}
        self._keys = options["keys"]
        self._database = Database(dsn, settings(dsn, 0))
        self.clients = [Client(self, number) for number in range(1, options["streams"] + 1)]

    async def connect(self) -> float:
        """All of them; seconds until the last has everything."""
        begun, gate = time.monotonic(), asyncio.Semaphore(_CONNECT_AT_ONCE)

        async def one(client: Client) -> None:
            async with gate:
                await client.connect()

        async with asyncio.timeout(_GIVE_UP_SECONDS):
            await asyncio.gather(*(one(client) for client in self.clients))
            await asyncio.gather(*(client.ready.wait() for client in self.clients))
        return time.monotonic() - begun

    async def store(self, seconds: float) -> None:
        """So many changes a second, each its own commit, evenly."""
        await self._database.open()
        nudger = Nudger(self._database)
        begun = time.monotonic()
        for number in range(round(seconds * _CHANGES_PER_SECOND)):
            await asyncio.sleep(max(0.0, begun + number / _CHANGES_PER_SECOND - time.monotonic()))
            key = f"K{random.randint(1, self._keys)}"
            at = time.time()
            await self._database.call(_STORE, (at, key, key))
            self.stored[key] = at
            nudger.nudge(CHANGED)
        await nudger.close()
        await self._database.close()

    async def wrong(self) -> int:
        """Values that a client has and that are not the last ones, once everything had time to arrive."""
        await asyncio.sleep(2)
        return sum(
            abs(client.has[key] - at) > 1e-4
            for client in self.clients
            for key, at in self.stored.items()
            if key in client.has
        )


def percentile(waits: list[float], percent: float) -> float:
    """In milliseconds."""
    ordered = sorted(waits)
    return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


async def fan_out(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Everybody connects; then changes for a while."""
    stage, crowd = Stage(), Crowd(dsn, options)
    connected = await crowd.connect()
    await stage.ready()
    await crowd.store(options["seconds"])
    return {
        "p50_ms": percentile(crowd.waits, 50),
        "p99_ms": percentile(crowd.waits, 99),
        "slowest_ms": percentile(crowd.waits, 100),
        "deliveries": len(crowd.waits),
        "connect_seconds": connected,
        "wrong": await crowd.wrong(),
        "cpu_seconds": time.process_time(),
    }


async def silent(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """A while without them, then the same with clients that never read."""
    crowd = Crowd(dsn, options)
    await crowd.connect()
    await crowd.store(options["seconds"])
    before, crowd.waits = crowd.waits, []
    begun: dict[EventStream, float] = {}
    held: list[float] = []

    async def come() -> None:
        for number in range(options["silent"]):
            path = f"/v1/sessions/{session(options['streams'] + number + 1)}/stream"
            stream = await EventStream.open(crowd.base, path, key=crowd.key, receive_bytes=4096, reads=False)
            begun[stream] = time.monotonic()
            await asyncio.sleep(0.02)

    async def look() -> None:
        while True:
            await asyncio.sleep(0.05)
            for stream in [one for one in begun if not one.established]:
                held.append(time.monotonic() - begun.pop(stream))
                stream.close()

    looking = asyncio.create_task(look())
    coming = asyncio.create_task(come())
    await crowd.store(options["seconds"])
    await coming
    looking.cancel()
    return {
        "p99_before_ms": percentile(before, 99),
        "p99_ms": percentile(crowd.waits, 99),
        "dropped": len(held),
        "held_seconds": max(held, default=0.0),
        "wrong": await crowd.wrong(),
    }


async def storm(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Everybody is there; then all go, and come back at once."""
    stage, crowd = Stage(), Crowd(dsn, options)
    await crowd.connect()
    await stage.ready()
    for client in crowd.clients:
        if client.stream is not None:
            client.stream.close()
    return {"seconds": await crowd.connect()}


async def subscribe(_: str, options: dict[str, Any]) -> dict[str, Any]:
    """One browser: a session, its stream, and a key that nobody knows, now and then.

    From before the request to the value on the stream.
    """
    samples: list[float] = []
    answers: list[float] = []
    headers = {"Authorization": f"Bearer {options['key']}"}
    async with aiohttp.ClientSession(options["base"], headers=headers) as client:
        async with client.post("/v1/sessions") as answer:
            mine = (await answer.json())["session"]
        stream = await EventStream.open(options["base"], f"/v1/sessions/{mine}/stream", key=options["key"])
        await stream.until("ready")
        for key in symbols(options["samples"]):
            await asyncio.sleep(random.uniform(*options["gap_seconds"]))
            asked = time.perf_counter()
            body = {"subscriptions": [{"type": TYPE, "key": key}]}
            async with client.put(f"/v1/sessions/{mine}/subscriptions", json=body) as answer:
                await answer.read()
                if answer.status != 200:
                    raise RuntimeError(await answer.text())
            answers.append(1000 * (time.perf_counter() - asked))
            while True:
                _, reading = await stream.next("reading")
                if reading["key"] == key and reading.get("value"):
                    break
            samples.append(1000 * (time.perf_counter() - asked))
        stream.close()
    return {"samples": samples, "answers": answers}


if __name__ == "__main__":
    structlog.configure(processors=[], logger_factory=lambda *_: structlog.ReturnLogger())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    perform({"serve": serve, "fan_out": fan_out, "silent": silent, "storm": storm, "subscribe": subscribe})
