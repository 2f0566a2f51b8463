"""Viewers, keys, types and the due check as gauges."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.gauge import Gauge, Sample, each, figure
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]

_TYPE = ("name",)


def _keys(document: Document) -> Iterator[Sample]:
    for one in part(document, "refresh").get("types", ()):
        for verdict, n in one["keys"].items():
            yield (one["name"], verdict), n


def _outcomes(document: Document) -> Iterator[Sample]:
    for one in part(document, "refresh").get("types", ()):
        for outcome, n in one["outcomes"].items():
            yield (one["name"], outcome), n


def _accuracy(document: Document) -> Iterator[Sample]:
    for one in part(document, "refresh").get("types", ()):
        if one["size_measured"] and one["size_estimate"]:
            yield (one["name"],), one["size_measured"] / one["size_estimate"]


def _due_check(document: Document) -> Iterator[Sample]:
    mean = part(document, "refresh").get("due_check", {}).get("mean_ms")
    yield (), None if mean is None else mean / 1000


GAUGES = (
    Gauge("livewell_viewers", "People who watch something.", (), figure("refresh", "viewers")),
    Gauge("livewell_sessions", "Sessions seen within five minutes.", (), figure("refresh", "sessions")),
    Gauge(
        "livewell_subscriptions", "Subscriptions by type.", ("type",), each("refresh", "types", _TYPE, "subscriptions")
    ),
    Gauge("livewell_keys", "Keys by type and verdict; parked: nobody watches.", ("type", "verdict"), _keys),
    Gauge(
        "livewell_type_refreshed",
        "Refreshes that were good, in this hour and the one before.",
        ("type",),
        each("refresh", "types", _TYPE, "refreshed"),
    ),
    Gauge(
        "livewell_type_refused",
        "Answers that were refused, in this hour and the one before.",
        ("type",),
        each("refresh", "types", _TYPE, "refused"),
    ),
    Gauge(
        "livewell_type_outcomes",
        "What became of refreshes, in this hour and the one before.",
        ("type", "outcome"),
        _outcomes,
    ),
    Gauge("livewell_type_size_ratio", "Measured size of an answer over its estimate.", ("type",), _accuracy),
    Gauge(
        "livewell_due_keys",
        "Keys that are due and not queued, up to 10,000.",
        ("upstream",),
        each("refresh", "due", ("upstream",), "keys"),
    ),
    Gauge(
        "livewell_due_oldest_seconds",
        "How long the oldest of them is due.",
        ("upstream",),
        each("refresh", "due", ("upstream",), "oldest_seconds"),
    ),
    Gauge("livewell_due_check_seconds", "How long a due check takes, over five minutes.", (), _due_check),
)
