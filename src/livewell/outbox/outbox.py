"""`app.outbox`: the topics and sinks that an app declares, and what operators do with them.

app = Livewell()
app.outbox.topic("orders.created", on_dead="park")
app.outbox.sink("shop", "nats", address="env:NATS_URL", topics=["orders.*"])

async with app:
    await app.outbox.admin.sinks()

Declared before the app opens, written to the database when it opens. Sinks and topics can also be
declared in the settings (LIVEWELL_SINKS, LIVEWELL_TOPICS), for processes without code of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from livewell.db import Database
from livewell.db.open_app import OpenApp
from livewell.duration import Duration, seconds
from livewell.errors import ConfigurationError
from livewell.model import Backoff
from livewell.outbox.admin import OutboxAdmin
from livewell.outbox.definition import (
    OUTSIDE,
    OWN,
    SinkDefinition,
    SinkPolicy,
    define_sink,
    define_topic,
    maker_of_kind,
    of_settings,
)
from livewell.outbox.sink import Sink
from livewell.settings import Settings

_TOPIC = "SELECT livewell.declare_topic(%s, %s::jsonb)"
_SINK = "SELECT livewell.declare_sink(%s, %s, %s, %s::jsonb)"
_DAYS = "SELECT livewell.ensure_event_days(%s)"


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
        self._topics[name] = define_topic(name, on_dead, payload_bytes_max)

    def sink(
        self,
        name: str,
        to: str | Callable[[], Sink] | None,
        *,
        address: str | None = None,
        topics: Sequence[str] = ("*",),
        ordered: bool = True,
        attempts: int = 20,
        backoff: Backoff | None = None,
        batch_max: int = 1000,
        deadline: Duration = 30,
        rate: str | None = None,
        **options: Any,
    ) -> None:
        """Declare where events go.

        to: a kind of sink ("nats", "webhook" …; see docs/reference/sinks.md), a callable that makes
        the object that sends, or None if others claim the events with outbox_claim. address:
        env:NAME, the variable that holds it. topics: names, beginnings with a star, or a star.
        rate: as "100/s", for all relays together. options: those of the kind. It takes what is
        emitted from now on; a replay sends older events.
        """
        if name in self.sinks:
            raise ConfigurationError(f"sink {name}: declared twice")
        if not isinstance(to, str) and (address is not None or options):
            given = ", ".join([*(["address"] if address is not None else []), *sorted(options)])
            raise ConfigurationError(f'sink {name}: {given}: only a sink of a kind, such as "nats", has these')
        pause = backoff or Backoff(1, 300)
        limit = seconds(deadline, f"sink {name}: deadline")
        policy = SinkPolicy(ordered, attempts, batch_max, pause.base_seconds, pause.cap_seconds, limit, rate)
        kind = to if isinstance(to, str) else OUTSIDE if to is None else OWN
        make = maker_of_kind(self._app, name, to, address, options) if isinstance(to, str) else to
        self.sinks[name] = define_sink(name, kind, topics, policy, make)

    def definitions(self, settings: Settings) -> list[SinkDefinition]:
        """The sinks of the app and those of the settings."""
        given = of_settings(self._app, settings)
        twice = [one.name for one in given if one.name in self.sinks]
        if twice:
            raise ConfigurationError(
                f"sink {twice[0]}: declared by the app and in the setting sinks; remove one of them"
            )
        return [*self.sinks.values(), *given]

    async def write(self, database: Database) -> None:
        """Tell the database what is declared; called when the app opens."""
        await database.call(_DAYS, (database.settings.history_days_ahead,))
        given = {
            one.name: define_topic(one.name, one.on_dead, one.payload_bytes_max) for one in database.settings.topics
        }
        for name, options in (given | self._topics).items():
            await database.call(_TOPIC, (name, json.dumps(options)))
        for sink in self.definitions(database.settings):
            await database.call(_SINK, (sink.name, sink.kind, list(sink.topics), json.dumps(sink.policy)))
