"""A process with the relays of one sink, to be killed and frozen: `python -m tests.faults.outbox_relay PORT`.

The sink speaks to outbox_receiver: one line for each event, one for each answer. On the way are
events that it breaks on (key /poison) and events that kill its process (key /killer).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from livewell import Backoff, Livewell
from livewell.outbox.event import Event
from livewell.outbox.relay import Relays
from livewell.outbox.sink import DELIVERED, Outcome, Settle, SinkAway, Verdict, send_by_lane

TOPIC = "orders.created"
SINK = "shop"


def declare(app: Livewell, port: int) -> None:
    """The one topic and the one sink."""
    app.outbox.topic(TOPIC)
    app.outbox.sink(SINK, lambda: LineSink(port), attempts=8, backoff=Backoff(0.05, 0.2), deadline=3)


class LineSink:
    """One connection; an event that is not answered when it breaks is unknown."""

    dedupes = False
    event_bytes_max: int | None = None

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._asked: dict[str, asyncio.Future[None]] = {}

    async def open(self) -> None:
        """Connect."""
        if self._reader is not None and not self._reader.done():
            return
        try:
            reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError as error:
            raise SinkAway(f"nobody receives: {error}") from None
        self._reader = asyncio.create_task(self._read(reader))

    async def close(self) -> None:
        """Hang up."""
        if self._reader is not None:
            self._reader.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            with suppress(OSError):
                while line := await reader.readline():
                    if (asked := self._asked.pop(line.decode().strip(), None)) is not None and not asked.done():
                        asked.set_result(None)
        finally:
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(ConnectionError())
            self._asked.clear()

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Lanes beside each other."""
        await send_by_lane(events, settle, self._one, at_once=50)

    async def _one(self, event: Event) -> Outcome:
        key = event.key or "-"
        if key.startswith("/poison"):
            raise UnicodeError("there are no words for it")
        if key.startswith("/killer"):
            os.abort()
        if self._writer is None or self._reader is None or self._reader.done():
            raise SinkAway("the connection is gone")
        asked = self._asked[event.id] = asyncio.get_running_loop().create_future()
        seq = json.loads(event.payload)["seq"]
        try:
            self._writer.write(f"{event.id} {event.tenant or '-'} {key} {seq} {os.getpid()}\n".encode())
            await self._writer.drain()
            await asked
        except OSError:
            return Outcome(Verdict.UNKNOWN, "it hung up before it answered")
        return DELIVERED


async def main(port: int) -> None:
    """Relay until killed."""
    app = Livewell()
    declare(app, port)
    async with app:
        relays = Relays(app.database, app.outbox.sinks.values(), f"relay {os.getpid()}")
        print("relaying", flush=True)
        await relays.run()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
