"""A sink that keeps nothing but a count: for benchmarks, and to try a system without a broker."""

from __future__ import annotations

from collections.abc import Sequence

from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Settle


class NullSink:
    """Takes everything at once."""

    dedupes = True
    event_bytes_max: int | None = None

    def __init__(self) -> None:
        self.taken = 0

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to give back."""

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Take them."""
        for event in events:
            settle(event, DELIVERED)
        self.taken += len(events)
