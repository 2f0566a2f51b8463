"""Counts events and keeps none: for benchmarks, and for tests of what stands before a sink."""

from __future__ import annotations

from collections.abc import Sequence

from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Settle
from livewell.outbox.sinks.kind import SinkKind, SinkParts
from livewell.outbox.sinks.options import Options


class NullSink:
    """Takes everything at once."""

    dedupes = True
    event_bytes_max: int | None = None

    def __init__(self, _: SinkParts) -> None:
        self.delivered = 0
        self.batches = 0

    async def open(self) -> None:
        """Nothing to connect."""

    async def close(self) -> None:
        """Nothing is held."""

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Count them."""
        self.batches += 1
        for event in events:
            self.delivered += 1
            settle(event, DELIVERED)


KIND = SinkKind(options=Options, make=NullSink, has_address=False)
