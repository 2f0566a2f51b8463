"""The app that the workers of the demo run: a task that resolves, and a receiver that writes a file.

Each worker is a relay too, so a kill hits calls and deliveries alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from livewell.app import Livewell
from livewell.apps.contacts.contacts import Contacts
from livewell.outbox.event import Event
from livewell.outbox.sink import DELIVERED, Settle

QUEUE = "contacts_demo"
TENANT = "demo"
RECEIVED_FILE = "CONTACTS_DEMO_RECEIVED"  # not LIVEWELL_…: those are settings

app = Livewell()


class FileSink:
    """The receiver: a line for each event, whole, whoever else is writing."""

    dedupes = False
    event_bytes_max: int | None = None

    def __init__(self) -> None:
        self._descriptor: int | None = None

    async def open(self) -> None:
        """Append only."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(Path(os.environ[RECEIVED_FILE]), flags, 0o600)

    async def close(self) -> None:
        """Give the file back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    async def send(self, events: Sequence[Event], settle: Settle) -> None:
        """Write, then say so."""
        assert self._descriptor is not None  # noqa: S101 - the relay opens first
        for event in events:
            line = json.dumps({"id": event.id, "key": event.key, "topic": event.topic}) + "\n"
            os.write(self._descriptor, line.encode())
            settle(event, DELIVERED)


app.outbox.sink("contacts_demo", FileSink, topics=["contact.*", "identity.*"])


@app.task(queue=QUEUE, name="contacts_demo.know", attempts=20, timeout="30s")
async def know(identities: list[list[str]]) -> None:
    """A sign-up, a log-in or a line of an import."""
    await Contacts.of(app).resolve([(kind, value) for kind, value in identities], tenant=TENANT)
