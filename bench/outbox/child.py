"""The program of every measured process: installs, relays in a worker, emits.

A child program, see bench/stage.py. Settings are the defaults, the worker is the one users run.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import nats
import psycopg
import structlog
from pydantic import SecretStr

from bench.outbox.lab import SINK, TOPIC
from bench.payload import PAYLOAD
from bench.stage import Stage, perform
from livewell import Livewell, Settings
from livewell.cli.commands.worker import settle_memory
from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Outcome, Settle, Verdict
from livewell.outbox.sinks import registry
from livewell.outbox.sinks.kind import SinkContext

_AT_ONCE = 256
_FAILED = Outcome(Verdict.FAILED, "it always fails")
_BARE = """
INSERT INTO public.bench_event (number, created_at, day, topic, tenant, key, payload, trace)
VALUES (nextval('public.bench_event_seq'), now(), (now() AT TIME ZONE 'UTC')::date, %s, %s, %s, %s::json, NULL)
"""


class StagedSink:
    """Takes everything at once, and knows when that began. A sink that keeps nothing."""

    dedupes = True
    event_bytes_max: int | None = None

    def __init__(self, stage: Stage) -> None:
        self.taken = 0
        self.began: list[float] = []  # of each batch
        self._stage = stage
        self.event_seconds = 0.0  # that it takes

    @property
    def told(self) -> int:
        """What the one who measures waits for."""
        return self.taken

    async def open(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Nothing is held."""

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Take them."""
        self._stage.handler_started()
        self.began.append(time.time())
        self.note(events)
        if self.event_seconds:
            await asyncio.sleep(self.event_seconds * len(events))
        for event in events:
            settle(event, DELIVERED)
        self.taken += len(events)

    def note(self, events: Sequence[Event]) -> None:
        """For those who look at events."""


class NotingSink(StagedSink):
    """Notes when each event of one tenant came."""

    tenant = "quiet"

    @property
    def told(self) -> int:
        """How many of that tenant came."""
        return len(self._stage.starts)

    def note(self, events: Sequence[Event]) -> None:
        """When they came."""
        for event in events:
            if event.tenant == self.tenant:
                self._stage.starts[event.key or ""] = self.began[-1]


class PickySink(StagedSink):
    """Looks at each key, and takes all events or none of the keys that end so; counts what it takes."""

    def __init__(self, stage: Stage, ending: str) -> None:
        super().__init__(stage)
        self._ending = ending

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Take all that may be taken; of a failed key nothing goes behind the one that failed."""
        self._stage.handler_started()
        self.began.append(time.time())
        failed: set[int] = set()
        for event in events:
            if event.lane in failed:
                continue
            if event.key is not None and event.key.endswith(self._ending):
                failed.add(event.lane)
                settle(event, _FAILED)
            else:
                settle(event, DELIVERED)
                self.taken += 1


class NatsSink(StagedSink):
    """The shipped one; counts what it delivered."""

    def __init__(self, stage: Stage, address: str) -> None:
        super().__init__(stage)
        context = SinkContext(environment={"BENCH_NATS": address})
        self._sink = registry.make_sink(registry.SinkOptions("nats", "env:BENCH_NATS"), context)
        self.open, self.close = self._sink.open, self._sink.close  # type: ignore[method-assign] # it is they

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Publish them."""
        self._stage.handler_started()
        self.began.append(time.time())

        def count(event: Event, outcome: Outcome) -> None:
            self.taken += outcome.verdict is Verdict.DELIVERED
            settle(event, outcome)

        await self._sink.send(events, count)


def make_sink(stage: Stage, options: dict[str, Any]) -> StagedSink:
    """As the line wants it. No key ends with a letter."""
    kind = options.get("sink", "null")
    if kind == "nats":
        return NatsSink(stage, options["nats"])
    if kind in ("failing", "picky"):
        return PickySink(stage, "00" if kind == "failing" else "z")
    return NotingSink(stage) if kind == "noting" else StagedSink(stage)


def make_app(dsn: str, sink: StagedSink | None = None) -> Livewell:
    """The app of every process."""
    app = Livewell(Settings(database_url=SecretStr(dsn)))
    app.outbox.topic(TOPIC)
    app.outbox.sink(SINK, lambda: sink or StagedSink(Stage()))
    return app


async def install(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Migrate, and declare the topic and the sink."""
    del options
    app = make_app(dsn)
    await app.open(apply_migrations=True)
    await app.close()
    return {}


async def work(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Be a worker that relays."""
    stage = Stage()
    sink = make_sink(stage, options)
    sink.event_seconds = options.get("event_seconds", 0.0)
    app = make_app(dsn, sink)
    async with app:
        settle_memory()  # as `livewell worker` does
        await stage.ready()
        worker = app.worker()
        running = asyncio.create_task(worker.run())
        await stage.until_stopped(lambda: sink.told)
        worker.stop()
        await running
    between = [b - a for a, b in zip(sink.began, sink.began[1:], strict=False)]
    batch = statistics.median(between) if between else 0.0
    return stage.answer(done=sink.taken, last=None) | {"batch_seconds": batch}


async def send(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Emit one now and then; the moment counts at which we know that it is committed."""
    sent: dict[str, float] = {}
    async with make_app(dsn) as app:
        for n in range(options["events"]):
            await asyncio.sleep(random.uniform(*options["gap_seconds"]))
            await app.emit(TOPIC, key=str(n), tenant=NotingSink.tenant, payload=PAYLOAD)
            sent[str(n)] = time.time()
        await asyncio.sleep(0.1)  # closing at once would forget the last nudge
    return {"sent": sent}


async def make_stream(_: str, options: dict[str, Any]) -> dict[str, Any]:
    """A stream that takes our topic."""
    client = await nats.connect(options["nats"])
    await client.jetstream().add_stream(name="bench", subjects=["orders.>"])
    await client.close()
    return {}


async def publish(_: str, options: dict[str, Any]) -> dict[str, Any]:
    """Publish as many as there are, as many at once as our sink has, and nothing else."""
    client = await nats.connect(options["nats"])
    stream = client.jetstream(publish_async_max_pending=10_000)
    body = json.dumps(PAYLOAD, separators=(",", ":")).encode()
    left = iter(range(options["events"]))

    async def loop() -> None:
        for n in left:
            await (await stream.publish_async(TOPIC, body, headers={"Nats-Msg-Id": str(n)}))

    started = time.perf_counter()
    await asyncio.gather(*(loop() for _ in range(_AT_ONCE)))
    seconds = time.perf_counter() - started
    await client.close()
    return {"seconds": seconds}


async def transact(dsn: str, options: dict[str, Any]) -> dict[str, Any]:
    """Business transactions, one after the other, each with one event: emitted, or by a bare INSERT.

    An order: read the customer, write the order and its three lines, take the stock. The two kinds
    take turns, so that both have the same machine.
    """
    took: dict[bool, list[float]] = {True: [], False: []}
    async with make_app(dsn) as app, await psycopg.AsyncConnection.connect(dsn) as connection:
        for n in range(options["transactions"] * 2):
            emits = n % 4 in (0, 3)
            began = time.perf_counter()
            async with connection.transaction():
                await _order(connection, n)
                if emits:
                    await app.emit(TOPIC, key=str(n), tenant="acme", payload=PAYLOAD, tx=connection)
                else:
                    body = json.dumps(PAYLOAD, ensure_ascii=False, separators=(",", ":"))
                    await connection.execute(_BARE, (TOPIC, "acme", str(n), body))
            took[emits].append(time.perf_counter() - began)
    return {"emit": took[True][len(took[True]) // 10 :], "bare": took[False][len(took[False]) // 10 :]}


async def _order(connection: psycopg.AsyncConnection[Any], n: int) -> None:
    await connection.execute("SELECT name FROM public.customer WHERE id = %s FOR SHARE", (n % 1000,))
    await connection.execute(
        "INSERT INTO public.purchase (id, customer, placed_at) VALUES (%s, %s, %s)", (n, n % 1000, datetime.now(UTC))
    )
    await connection.execute(
        "INSERT INTO public.purchase_line (purchase, line, article, n) SELECT %s, g, %s, 1 FROM generate_series(1, 3) g",
        (n, n % 1000),
    )
    await connection.execute("UPDATE public.article SET stock = stock - 3 WHERE id = %s", (n % 1000,))


if __name__ == "__main__":
    structlog.configure(processors=[], logger_factory=lambda *_: structlog.ReturnLogger())
    verbs = (install, work, send, transact, make_stream, publish)
    perform({verb.__name__: verb for verb in verbs})
