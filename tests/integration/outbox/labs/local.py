"""Receivers that no network leads to: a file, and the queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from livewell.outbox.sink import Sink
from livewell.queue.enqueue import Request
from livewell.testing.sinks import Received
from tests.integration.outbox.labs.parts import make


class FileLab:
    """A file in a folder of the test."""

    secret = ""
    event_bytes_max = 50_000
    middle_bytes = mock_repeats_max = 0

    def __init__(self, folder: Path) -> None:
        self.path = folder / "events.jsonl"

    def sink(self) -> Sink:
        """To the file."""
        return make("file", None, {"path": str(self.path), "event_bytes_max": self.event_bytes_max})

    async def received(self) -> list[Received]:
        """Every whole line. The payload is read from its text: JSON would write it in another way."""
        found = []
        for line in self.path.read_text().splitlines():
            event = json.loads(line)
            found.append(Received(event["id"], line.partition(',"data":')[2][:-1], event["subject"]))
        return found


class TaskLab:
    """An enqueuer that keeps what it is given, as the database would: one live job for a unique key."""

    secret = ""
    event_bytes_max = 50_000
    middle_bytes = mock_repeats_max = 0

    def __init__(self) -> None:
        self.jobs: dict[str | None, Request] = {}
        self.error: Exception | None = None

    async def submit(self, requests: Sequence[Request]) -> None:
        """All or none."""
        if self.error is not None:
            raise self.error
        for request in requests:
            request.check()
        for request in requests:
            self.jobs.setdefault(request.unique_key, request)

    def sink(self, **options: object) -> Sink:
        """To this enqueuer."""
        given = {"task": "orders.take", "queue": "orders", "event_bytes_max": self.event_bytes_max, **options}
        return make("tasks", None, given, submit=self.submit)

    async def received(self) -> list[Received]:
        """The jobs in their order."""
        found = []
        for request in self.jobs.values():
            event = json.loads(request.payload)["event"]
            found.append(Received(event["id"], request.payload.partition(',"data":')[2][:-2], event["subject"]))
        return found
