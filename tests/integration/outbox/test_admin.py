"""What operators do with the outbox from Python, and what workers do for it by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from livewell import Livewell
from livewell.errors import EventNotFound, InvalidOption, UnknownSink
from livewell.outbox.event import Event
from livewell.outbox.relay import Relays
from livewell.outbox.sink import DELIVERED, Outcome, Settle, Verdict, lanes
from livewell.settings import Settings
from livewell.testing.processes import eventually_async

TOPIC = "orders.paid"


class Picky:
    """Remembers what it took, and refuses payloads that say so until it is told otherwise."""

    dedupes = True
    event_bytes_max: int | None = None

    def __init__(self) -> None:
        self.taken: list[Event] = []
        self.refuses = True

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        for lane in lanes(events):
            for event in lane:
                if self.refuses and event.payload == '"bad"':
                    settle(event, Outcome(Verdict.REFUSED, "not this one"))
                    break
                self.taken.append(event)
                settle(event, DELIVERED)


@pytest.fixture
def sink() -> Picky:
    return Picky()


@pytest.fixture
async def app(livewell_settings: Settings, sink: Picky) -> AsyncIterator[Livewell]:
    """An app with a topic that parks and one sink, open; nobody relays."""
    made = Livewell(livewell_settings)
    made.outbox.topic(TOPIC, on_dead="park")
    made.outbox.sink("shop", lambda: sink)
    async with made:
        yield made


@pytest.fixture
async def relays(app: Livewell) -> AsyncIterator[Relays]:
    """Its relays at work."""
    made = Relays(app.database, app.outbox.definitions(app.settings), "test")
    app.nudger.attach(made.hear)
    running = asyncio.create_task(made.run())
    yield made
    made.stop()
    await asyncio.wait_for(running, 30)


async def test_a_parked_key_is_found_mended_and_goes_on_in_order(app: Livewell, sink: Picky, relays: Relays) -> None:
    """Demand 2, end to end: why, redrive, and the receiver's own log."""
    ids = [await app.emit(TOPIC, key="k", payload=payload) for payload in ("bad", 2, 3)]
    admin = app.outbox.admin
    await eventually_async(lambda: _parked(app))

    assert [(await admin.why(one))[0]["code"] for one in ids] == ["dead", "parked", "parked"]
    [letter] = await admin.dead(sink="shop", reason="refused")
    [block] = (await admin.blocks(sink="shop")).rows
    assert (letter["id"], block["event_id"], block["aside"]) == (ids[0], ids[0], 2)
    assert (await admin.stats())["parked"] == 1

    sink.refuses = False
    assert await admin.redrive([ids[0]]) == 1
    await eventually_async(lambda: _taken(sink, 3))
    assert [event.id for event in sink.taken] == ids
    assert [one["state"] for one in (await admin.event(ids[0]))["sinks"]] == ["delivered"]


async def test_a_paused_sink_takes_nothing_until_it_is_resumed(app: Livewell, sink: Picky, relays: Relays) -> None:
    """The nudge of resume wakes the relays at once."""
    admin = app.outbox.admin
    assert [await admin.pause("shop"), await admin.pause("shop")] == [True, False]
    made = await app.emit(TOPIC, payload=1)
    assert (await admin.why(made))[0]["code"] in ("paused", "no_relay")
    assert sink.taken == []

    assert await admin.resume("shop")
    await eventually_async(lambda: _taken(sink, 1))


async def test_all_that_match_go_page_by_page(app: Livewell, sink: Picky, relays: Relays) -> None:
    """More than a page; what dies again meanwhile is left."""
    for n in range(150):
        await app.emit(TOPIC, key=f"k{n}", payload="bad")
    await eventually_async(lambda: _dead(app, 150))

    assert await app.outbox.admin.redrive_all(sink="shop", topic=TOPIC, reason="refused") == 150
    await eventually_async(lambda: _dead(app, 150))
    assert await app.outbox.admin.discard_all(sink="shop") == 150
    assert await app.outbox.admin.dead() == []


async def test_what_is_not_there_is_said(app: Livewell) -> None:
    admin = app.outbox.admin
    with pytest.raises(EventNotFound, match="events are kept for some days"):
        await admin.event("00000000-7")
    with pytest.raises(EventNotFound, match="event nonsense"):
        await admin.redrive(["nonsense"])
    with pytest.raises(UnknownSink, match="there are: shop"):
        await admin.pause("none")
    with pytest.raises(InvalidOption, match="a time zone is needed"):
        await admin.begin_replay("shop", start=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
    with pytest.raises(InvalidOption, match="allowed are failed"):
        await admin.blocks(state="odd")


async def test_a_worker_feeds_a_replay_to_its_end(app: Livewell, sink: Picky) -> None:
    """Its duty does; the receiver gets the same ids once more, with the attribute."""
    worker = app.worker(queues=["none"])
    working = asyncio.create_task(worker.run())
    try:
        ids = [await app.emit(TOPIC, key="k", payload=n) for n in range(5)]
        await eventually_async(lambda: _taken(sink, 5), 30)
        start = datetime.now(UTC) - timedelta(hours=1)
        replay = await app.outbox.admin.begin_replay("shop", start=start, rate=1000)
        await eventually_async(lambda: _is_done(app, replay), 30)
        await eventually_async(lambda: _taken(sink, 10), 30)
    finally:
        worker.stop()
        await asyncio.wait_for(working, 30)

    assert [event.id for event in sink.taken] == ids * 2
    assert [event.replay for event in sink.taken] == [False] * 5 + [True] * 5
    assert sink.taken[-1].attributes()["replay"] == "true"


async def test_a_sink_of_the_settings_is_served_by_any_worker(livewell_settings: Settings) -> None:
    """O6, O7: no line of code; the topic comes from the settings, too."""
    given = livewell_settings.model_dump() | {
        "sinks": [{"name": "nowhere", "kind": "null"}],
        "topics": [{"name": TOPIC}],
    }
    async with Livewell(Settings.model_validate(given)) as app:
        worker = app.worker(queues=["none"])
        working = asyncio.create_task(worker.run())
        try:
            made = await app.emit(TOPIC, payload=1)
            await eventually_async(lambda: _is_delivered(app, made), 30)
        finally:
            worker.stop()
            await asyncio.wait_for(working, 30)


def test_blocking_code_has_it_too(livewell_settings: Settings) -> None:
    app = Livewell(livewell_settings)
    app.outbox.sink("erp", None)
    with app.sync:
        assert app.sync.call(app.outbox.admin.pause, "erp") is True
        assert [one["name"] for one in app.sync.call(app.outbox.admin.sinks)] == ["erp"]


async def _taken(sink: Picky, n: int) -> bool:
    return len(sink.taken) >= n


async def _parked(app: Livewell) -> bool:
    [found] = await app.outbox.admin.sinks()
    return bool(found["parked"] and found["aside"] == 2)


async def _dead(app: Livewell, n: int) -> bool:
    return bool((await app.outbox.admin.stats())["dead"] == n)


async def _is_done(app: Livewell, replay: int) -> bool:
    return any(row["id"] == replay and row["state"] == "done" for row in await app.outbox.admin.replays())


async def _is_delivered(app: Livewell, event_id: str) -> bool:
    [found] = (await app.outbox.admin.event(event_id))["sinks"]
    return bool(found["state"] == "delivered")
