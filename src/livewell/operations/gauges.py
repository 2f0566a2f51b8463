"""The schema, the system state itself, the database and its warnings as gauges."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from livewell.telemetry.gauge import Gauge, Sample, figure
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]


def _warnings(document: Document) -> Iterator[Sample]:
    for one in part(document, "database").get("warnings", ()):
        yield (one["place"], one["what"]), one["this_hour"] + one["last_hour"]


def _release(document: Document) -> Iterator[Sample]:
    yield (part(document, "database").get("release", "unknown"),), 1


def _ages(document: Document) -> Iterator[Sample]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield (name,), value.get("sample_age_seconds", 0.0)


def _how(word: str) -> Callable[[Document], Iterator[Sample]]:
    def samples(document: Document) -> Iterator[Sample]:
        for name, value in document.items():
            if isinstance(value, dict):
                yield (name,), int(value.get("how") == word)

    return samples


GAUGES = (
    Gauge("livewell_release_info", "The release of the schema.", ("release",), _release),
    Gauge(
        "livewell_state_seconds",
        "How long the state took to read.",
        (),
        lambda document: [((), document["took_ms"] / 1000)],
    ),
    Gauge("livewell_state_sample_age_seconds", "How old the figures of a part are; 0: exact now.", ("part",), _ages),
    Gauge(
        "livewell_state_estimated",
        "1: the figures of a part are estimated from a sample.",
        ("part",),
        _how("estimated"),
    ),
    Gauge("livewell_state_failed", "1: a part of the state could not be read.", ("part",), _how("failed")),
    Gauge("livewell_database_bytes", "Size of the database.", (), figure("database", "bytes")),
    Gauge("livewell_database_connections", "Connections to the database.", (), figure("database", "connections")),
    Gauge(
        "livewell_database_oldest_transaction_seconds",
        "Age of the oldest open transaction.",
        (),
        figure("database", "oldest_transaction_seconds"),
    ),
    Gauge("livewell_warnings", "Tolerated failures in this hour and the one before.", ("place", "what"), _warnings),
)
