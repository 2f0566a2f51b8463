"""A sink with a rate is sent no more than that, by however many relays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from livewell import Livewell, Settings
from livewell.errors import ConfigurationError
from livewell.outbox.emit import NewEvent
from livewell.outbox.event import Event
from livewell.outbox.relay import Relays
from livewell.outbox.sink import DELIVERED, Settle
from livewell.testing.processes import eventually_async


class Clocked:
    """Notes when each event came."""

    dedupes = True
    event_bytes_max: int | None = None

    def __init__(self) -> None:
        self.at: list[float] = []

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        for event in events:
            self.at.append(time.monotonic())
            settle(event, DELIVERED)


async def test_two_relays_keep_to_the_rate_together(livewell_settings: Settings) -> None:
    """In no window of a second more than the rate, and what both may have saved up.

    A slow machine makes it slower, never faster. Seen failing without the pace: all 120 at once.
    """
    app, sink = Livewell(), Clocked()
    app.outbox.topic("a")
    app.outbox.sink("slow", lambda: sink, rate="50/s")
    await app.open(settings=livewell_settings)
    relays = [Relays(app.database, app.outbox.sinks.values(), f"relay {n}") for n in range(2)]
    running = [asyncio.create_task(one.run()) for one in relays]
    await app.emit.many([NewEvent(topic="a", payload=n, key=str(n)) for n in range(120)])

    await eventually_async(lambda: len(sink.at) == 120, timeout=30)
    for one in relays:
        one.stop()
    await asyncio.gather(*running)
    await app.close()

    windows = [sum(1 for at in sink.at if begin <= at < begin + 1) for begin in sink.at]
    assert max(windows) <= 62


def test_a_rate_that_is_none_is_refused() -> None:
    """When it is declared, with how to write it."""
    with pytest.raises(ConfigurationError, match=r'write it like "300/min"'):
        Livewell().outbox.sink("slow", None, rate="fast")
