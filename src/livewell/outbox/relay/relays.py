"""All relays of a process: one for each sink it can send to, each kept alive.

A relay that ends with an error nobody foresaw is begun again after a pause; the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from livewell.db import Database
from livewell.loops import backoff_seconds
from livewell.outbox.definition import SinkDefinition
from livewell.outbox.nudges import EVENTS
from livewell.outbox.relay.relay import Relay

log = structlog.get_logger("livewell.outbox")


class Relays:
    """Made from what the app and the settings declare."""

    def __init__(self, database: Database, sinks: Iterable[SinkDefinition], holder: str) -> None:
        self._database = database
        self._sinks = [one for one in sinks if not one.outside]
        self._holder = holder
        self._running: dict[str, Relay] = {}
        self._stopped = asyncio.Event()

    def hear(self, name: str) -> None:
        """A nudge."""
        if name == EVENTS:
            for relay in self._running.values():
                relay.wake()

    def stop(self) -> None:
        """Every relay ends when what it has in flight is settled."""
        self._stopped.set()
        for relay in self._running.values():
            relay.stop()

    async def run(self) -> None:
        """Until cancelled, or stopped; also without any sink, because a worker ends with what runs beside it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stopped.wait())
            for sink in self._sinks:
                group.create_task(self._keep(sink))

    async def _keep(self, sink: SinkDefinition) -> None:
        failures = 0
        while not self._stopped.is_set():
            relay = self._running[sink.name] = Relay(self._database, sink, self._holder)
            try:
                await relay.run()
            except Exception:
                failures += 1
                log.exception("a relay ended and is begun again", sink=sink.name)
                await asyncio.sleep(backoff_seconds(failures))
            finally:
                self._running.pop(sink.name, None)
