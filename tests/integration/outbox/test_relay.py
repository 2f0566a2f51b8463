"""O7: relays of one process at work, with sinks that are slow, away, or hang."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from livewell import Livewell
from livewell.outbox.emit import NewEvent
from livewell.outbox.event import Event
from livewell.outbox.relay import Relays, batch_size
from livewell.outbox.sink import DELIVERED, Settle, Sink, SinkAway, send_by_lane
from livewell.outbox.sink import Outcome as SinkOutcome
from livewell.settings import Settings
from livewell.testing.processes import eventually_async

TOPIC = "orders.created"


class Taker:
    """Takes everything, remembers it, and hangs on keys that begin with `hang`."""

    dedupes = True
    event_bytes_max: int | None = None

    def __init__(self) -> None:
        self.taken: list[Event] = []
        self.calls: list[float] = []
        self.down = False
        self.hung = 0

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        self.calls.append(time.monotonic())
        if self.down:
            raise SinkAway("it takes nothing")

        async def one(event: Event) -> SinkOutcome:
            if (event.key or "").startswith("hang"):
                self.hung += 1
                await asyncio.Event().wait()
            self.taken.append(event)
            return DELIVERED

        await send_by_lane(events, settle, one, at_once=1000)

    def keys(self) -> list[str | None]:
        return [event.key for event in self.taken]


@asynccontextmanager
async def relaying(settings: Settings, sink: Sink) -> AsyncIterator[tuple[Livewell, Relays]]:
    """An app with one topic and one sink, and its relays at work."""
    app = Livewell(settings)
    app.outbox.topic(TOPIC)
    app.outbox.sink("shop", lambda: sink)
    async with app:
        relays = Relays(app.database, app.outbox.sinks.values(), "test")
        running = asyncio.create_task(relays.run())
        try:
            yield app, relays
        finally:
            relays.stop()
            await asyncio.wait_for(running, 30)


async def test_everything_arrives_once_and_in_order(livewell_settings: Settings) -> None:
    sink = Taker()
    async with relaying(livewell_settings, sink) as (app, _):
        for n in range(5):
            await app.emit.many(
                [NewEvent(topic=TOPIC, key=f"k{i % 9}", tenant=f"t{i % 2}", payload=n) for i in range(100)]
            )
        await eventually_async(lambda: len(sink.taken) == 500, 60)
    numbers = [event.number for event in sink.taken]
    lanes = {event.lane for event in sink.taken}

    assert len(set(numbers)) == 500
    for lane in lanes:
        mine = [event.number for event in sink.taken if event.lane == lane]
        assert mine == sorted(mine)


async def test_a_sink_that_opens_and_takes_nothing_is_asked_with_growing_pauses(livewell_settings: Settings) -> None:
    """Seen failing: it was asked again at once, for ever. A nudge does not end the pause."""
    sink = Taker()
    sink.down = True
    async with relaying(livewell_settings, sink) as (app, relays):
        await app.emit(TOPIC, payload=1)

        def nudged() -> bool:
            relays.hear("events")
            return len(sink.calls) >= 5

        await eventually_async(nudged)
        sink.down = False
        await eventually_async(lambda: sink.taken)

    assert sink.calls[4] - sink.calls[3] >= 0.5  # 2 · 50 ms · 2⁴, less the jitter
    assert [event.attempt for event in sink.taken] == [0]


async def test_what_hangs_leaves_room_also_where_a_batch_is_one_event(
    livewell_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen failing: one hanging event was the whole room, and nothing else went until its deadline."""
    monkeypatch.setattr(batch_size, "_FIRST", 1)
    sink = Taker()
    async with relaying(livewell_settings, sink) as (app, _):
        await app.emit.many([NewEvent(topic=TOPIC, key=f"hang{n}", payload=n) for n in range(3)])
        await eventually_async(lambda: sink.hung == 3)
        await app.emit.many([NewEvent(topic=TOPIC, key=f"good{n}", payload=n) for n in range(10)])
        await eventually_async(lambda: len(sink.taken) == 10)

    assert sink.hung == 3


async def test_a_stop_waits_for_no_event_that_hangs(livewell_settings: Settings) -> None:
    """It goes again with the next relay, as it was never answered."""
    sink = Taker()
    async with relaying(livewell_settings, sink) as (app, _):
        await app.emit(TOPIC, payload=1, key="hang")
        await eventually_async(lambda: sink.hung == 1)
        began = time.monotonic()
    after = Taker()
    async with relaying(livewell_settings, after) as (app, _):
        await app.emit(TOPIC, payload=1, key="good")
        await eventually_async(lambda: after.keys() == ["good"] and after.hung == 1)

    assert time.monotonic() - began < 30  # the deadline of the event
