"""An event as sinks get it, in the terms of CloudEvents 1.0."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

CONTENT_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Event:
    """One event on its way to one sink.

    number      its place in the order of emission; the database knows it by this number
    id          what a receiver drops duplicates by: the same in every attempt and every replay
    payload     JSON, letter by letter as it was emitted
    lane        events of one lane go one after the other: a hash of tenant and key; an event without
                a key has a lane of its own
    attempt     how often it was refused or unanswered before
    """

    number: int
    id: str
    source: str
    topic: str
    key: str | None
    tenant: str
    created_at: datetime
    payload: str
    trace: str | None
    lane: int
    attempt: int = 0
    replay: bool = False

    def attributes(self) -> dict[str, str]:
        """Its CloudEvents attributes by name, without prefix and not encoded for any transport."""
        given = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.topic,
            "time": self.created_at.isoformat().replace("+00:00", "Z"),
            "datacontenttype": CONTENT_TYPE,
            "subject": self.key,
            "partitionkey": self.key,
            "tenant": self.tenant or None,
            "traceparent": self.trace,
            "replay": "true" if self.replay else None,
        }
        return {name: value for name, value in given.items() if value}
