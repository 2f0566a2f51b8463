"""`app.outbox`: the topics and sinks that an app declares, and what operators do with them.

app = Livewell()
app.outbox.topic("orders.created", on_dead="park")
app.outbox.sink("shop", "nats", address="env:NATS_URL", topics=["orders.*"])

Declared before the app opens, written to the database when it opens. Sinks can also be declared in
the settings (LIVEWELL_SINKS), for processes without code of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from livewell.db import Database
from livewell.db.open_app import OpenApp
from livewell.duration import Duration, seconds
from livewell.errors import ConfigurationError
from livewell.model import Backoff
from livewell.outbox.admin import OutboxAdmin
from livewell.outbox.sink import Sink

_SINK_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_TOPIC_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}")
_PATTERN = re.compile(r"\*|[A-Za-z][A-Za-z0-9_.-]{0,199}\*?")
_TOPIC = "SELECT livewell.declare_topic(%s, %s::jsonb)"
_SINK = "SELECT livewell.declare_sink(%s, %s, %s, %s::jsonb)"
_DAYS = "SELECT livewell.ensure_event_days(%s)"
OWN = "own"  # the kind of a sink that the app brings as an object


@dataclass(frozen=True, slots=True)
class SinkDefinition:
    """A sink as it was declared. `make` gives the object that sends, anew for each relay."""

    name: str
    kind: str
    topics: tuple[str, ...]
    policy: Mapping[str, Any]
    make: Callable[[], Sink] | None = field(repr=False)

    @property
    def outside(self) -> bool:
        """True if others claim its events with outbox_claim."""
        return self.make is None


class Outbox:
    """What an app says about its events."""

    def __init__(self, app: OpenApp) -> None:
        self._app = app
        self._topics: dict[str, dict[str, Any]] = {}
        self.sinks: dict[str, SinkDefinition] = {}

    @property
    def admin(self) -> OutboxAdmin:
        """What operators do with it: look, pause, redrive, replay. The app has to be open."""
        return OutboxAdmin.of(self._app)

    def topic(
        self, name: str, *, on_dead: Literal["continue", "park"] = "continue", payload_bytes_max: int = 262_144
    ) -> None:
        """Declare a kind of event; only declared ones can be emitted.

        on_dead: what a dead letter does to later events of its key. With "park" they wait until a
        person redrives or discards it.
        """
        if not _TOPIC_NAME.fullmatch(name):
            raise ConfigurationError(
                f"topic {name!r}: 1 to 200 of A-Z a-z 0-9 _ . - are allowed, beginning with a letter"
            )
        if on_dead not in ("continue", "park"):
            raise ConfigurationError(f"topic {name}: on_dead={on_dead!r}: allowed are 'continue' and 'park'")
        if not 1 <= payload_bytes_max <= 1_048_576:
            raise ConfigurationError(f"topic {name}: payload_bytes_max={payload_bytes_max}: 1 to 1048576 are allowed")
        self._topics[name] = {"on_dead": on_dead, "payload_bytes_max": payload_bytes_max}

    def sink(
        self,
        name: str,
        to: Callable[[], Sink] | None,
        *,
        kind: str = OWN,
        topics: Sequence[str] = ("*",),
        ordered: bool = True,
        attempts: int = 20,
        backoff: Backoff | None = None,
        batch_max: int = 1000,
        deadline: Duration = 30,
    ) -> None:
        """Declare where events go.

        to: makes the object that sends; None if others claim the events with outbox_claim. topics:
        names, beginnings with a star, or a star. It takes what is emitted from now on.
        """
        if not _SINK_NAME.fullmatch(name):
            raise ConfigurationError(f"sink {name!r}: 1 to 63 of a-z 0-9 _ - are allowed, beginning with a letter")
        if name in self.sinks:
            raise ConfigurationError(f"sink {name}: declared twice")
        wrong = [pattern for pattern in topics if not _PATTERN.fullmatch(pattern)]
        if wrong or not 1 <= len(topics) <= 100:
            raise ConfigurationError(
                f"sink {name}: topics {list(topics)!r}: 1 to 100 names, beginnings with a star, or '*' are allowed"
            )
        if not 1 <= attempts <= 1000 or not 1 <= batch_max <= 5000:
            raise ConfigurationError(
                f"sink {name}: attempts={attempts}, batch_max={batch_max}: 1 to 1000 and 1 to 5000 are allowed"
            )
        pause = backoff or Backoff(1, 300)
        if not 0 <= pause.base_seconds <= pause.cap_seconds <= 604_800:
            raise ConfigurationError(f"sink {name}: {pause}: allowed is 0 ≤ base ≤ cap ≤ 604800 s")
        limit = seconds(deadline, f"sink {name}: deadline")
        if not 0.1 <= limit <= 600:
            raise ConfigurationError(f"sink {name}: deadline {limit:g} s: 0.1 to 600 s are allowed")
        policy = {
            "ordered": ordered,
            "outside": to is None,
            "attempts": attempts,
            "batch_max": batch_max,
            "backoff_base_seconds": pause.base_seconds,
            "backoff_cap_seconds": pause.cap_seconds,
            "deadline_seconds": limit,
        }
        self.sinks[name] = SinkDefinition(name, "outside" if to is None else kind, tuple(topics), policy, to)

    async def write(self, database: Database) -> None:
        """Tell the database what is declared; called when the app opens."""
        await database.call(_DAYS, (database.settings.history_days_ahead,))
        for name, options in self._topics.items():
            await database.call(_TOPIC, (name, json.dumps(options)))
        for sink in self.sinks.values():
            await database.call(_SINK, (sink.name, sink.kind, list(sink.topics), json.dumps(sink.policy)))
