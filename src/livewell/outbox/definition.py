"""Sinks as they are declared, by an app in Python or in the settings, and what may be declared.

app.outbox.sink(…) ──┐
                     ├──checked──▶ SinkDefinition ──make()──▶ a Sink, anew for each relay
[[sinks]], settings ─┘
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from livewell.db.open_app import OpenApp
from livewell.errors import ConfigurationError
from livewell.limits.notation import rate as read_rate
from livewell.outbox.sink import Sink
from livewell.outbox.sinks.kind import SinkContext
from livewell.outbox.sinks.registry import SinkOptions, kinds, make_sink
from livewell.queue.enqueue import Enqueuer
from livewell.settings import Settings, SinkTable

OUTSIDE = "outside"  # the kind of a sink whose events others claim with outbox_claim
OWN = "own"  # the kind of a sink that the app brings as an object

_SINK_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_TOPIC_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}")
_PATTERN = re.compile(r"\*|[A-Za-z][A-Za-z0-9_.-]{0,199}\*?")


@dataclass(frozen=True, slots=True)
class SinkPolicy:
    """How a sink is served.

    ordered           False: no event waits for another of its key
    attempts          after so many an event is a dead letter
    batch_max         events in one batch, at most
    backoff_…         the pause after a failure doubles from base up to cap
    deadline_seconds  what is not answered by then is unknown
    rate              events that it is sent in any window at most, by all relays together: "100/s"
    """

    ordered: bool = True
    attempts: int = 20
    batch_max: int = 1000
    backoff_base_seconds: float = 1
    backoff_cap_seconds: float = 300
    deadline_seconds: float = 30
    rate: str | None = None

    def document(self, *, outside: bool) -> dict[str, Any]:
        """As declare_sink takes it."""
        named = {name: getattr(self, name) for name in SinkPolicy.__slots__}
        return {**named, "outside": outside}


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


def define_sink(
    name: str, kind: str, topics: Sequence[str], policy: SinkPolicy, make: Callable[[], Sink] | None
) -> SinkDefinition:
    """A sink that can be declared; raises ConfigurationError for one that cannot."""
    if not _SINK_NAME.fullmatch(name):
        raise ConfigurationError(f"sink {name!r}: 1 to 63 of a-z 0-9 _ - are allowed, beginning with a letter")
    wrong = [pattern for pattern in topics if not _PATTERN.fullmatch(pattern)]
    if wrong or not 1 <= len(topics) <= 100:
        raise ConfigurationError(
            f"sink {name}: topics {list(topics)!r}: 1 to 100 names, beginnings with a star, or '*' are allowed"
        )
    if not 1 <= policy.attempts <= 1000 or not 1 <= policy.batch_max <= 5000:
        raise ConfigurationError(
            f"sink {name}: attempts={policy.attempts}, batch_max={policy.batch_max}: 1 to 1000 and 1 to 5000 are "
            "allowed"
        )
    base, cap = policy.backoff_base_seconds, policy.backoff_cap_seconds
    if not 0 <= base <= cap <= 604_800:
        raise ConfigurationError(f"sink {name}: backoff of {base:g} to {cap:g} s: allowed is 0 ≤ base ≤ cap ≤ 604800 s")
    if not 0.1 <= policy.deadline_seconds <= 600:
        raise ConfigurationError(f"sink {name}: deadline {policy.deadline_seconds:g} s: 0.1 to 600 s are allowed")
    if policy.rate is not None:
        read_rate(policy.rate, f"sink {name}")
    return SinkDefinition(name, kind, tuple(topics), policy.document(outside=make is None), make)


def maker_of_kind(
    app: OpenApp, name: str, kind: str, address: str | None, options: Mapping[str, object]
) -> Callable[[], Sink]:
    """What makes the sinks of a kind; raises ConfigurationError if nobody offers the kind.

    Its options and its variables are looked at where it is made, in a process that relays: a server
    that opens the same app needs neither the library nor the secret.
    """
    if kind not in kinds():
        raise ConfigurationError(
            f"sink {name}: kind {kind!r} is unknown; there are: {', '.join(kinds())}, and {OUTSIDE} in the settings"
        )
    declared = SinkOptions(kind, address, options)

    def make() -> Sink:
        settings = app.database.settings
        submit = Enqueuer(app.database, app.nudger).enqueue
        return make_sink(declared, SinkContext(private_hosts=settings.outbound_private_hosts, submit=submit))

    return make


def of_settings(app: OpenApp, settings: Settings) -> list[SinkDefinition]:
    """The sinks that the settings declare."""
    return [_of_table(app, table) for table in settings.sinks]


def _of_table(app: OpenApp, table: SinkTable) -> SinkDefinition:
    policy = SinkPolicy(**{name: getattr(table, name) for name in SinkPolicy.__slots__})
    make = None
    if table.kind != OUTSIDE:
        make = maker_of_kind(app, table.name, table.kind, table.address, table.options)
    return define_sink(table.name, table.kind, table.topics, policy, make)


def define_topic(name: str, on_dead: Literal["continue", "park"], payload_bytes_max: int) -> dict[str, Any]:
    """The options of a topic that can be declared; raises ConfigurationError for one that cannot."""
    if not _TOPIC_NAME.fullmatch(name):
        raise ConfigurationError(f"topic {name!r}: 1 to 200 of A-Z a-z 0-9 _ . - are allowed, beginning with a letter")
    if on_dead not in ("continue", "park"):
        raise ConfigurationError(f"topic {name}: on_dead={on_dead!r}: allowed are 'continue' and 'park'")
    if not 1 <= payload_bytes_max <= 1_048_576:
        raise ConfigurationError(f"topic {name}: payload_bytes_max={payload_bytes_max}: 1 to 1048576 are allowed")
    return {"on_dead": on_dead, "payload_bytes_max": payload_bytes_max}
