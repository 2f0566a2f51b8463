"""The outbox as gauges: what waits, since when, of whom, and who delivers it."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.gauge import Gauge, Sample, each
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]

_SINK = ("name",)


def _dead(document: Document) -> Iterator[Sample]:
    for sink in part(document, "outbox").get("sinks", ()):
        for reason, n in sink["dead_reasons"].items():
            yield (sink["name"], reason), n


def _away(document: Document) -> Iterator[Sample]:
    for sink in part(document, "outbox").get("sinks", ()):
        yield (sink["name"],), int(sink["away_since"] is not None)


def _paused(document: Document) -> Iterator[Sample]:
    for sink in part(document, "outbox").get("sinks", ()):
        yield (sink["name"],), int(sink["paused_at"] is not None)


def _ahead(document: Document) -> Iterator[Sample]:
    yield (), part(document, "outbox").get("days", {}).get("ahead")


GAUGES = (
    Gauge(
        "livewell_outbox_waiting",
        "Events that wait for a sink, without those of blocked keys.",
        ("sink",),
        each("outbox", "sinks", _SINK, "waiting"),
    ),
    Gauge(
        "livewell_outbox_aside",
        "Events that wait behind another one of their key, which is blocked.",
        ("sink",),
        each("outbox", "sinks", _SINK, "aside"),
    ),
    Gauge(
        "livewell_outbox_oldest_seconds",
        "How long the oldest event waits; not of parked keys, and not of replays.",
        ("sink",),
        each("outbox", "sinks", _SINK, "oldest_seconds"),
    ),
    Gauge(
        "livewell_outbox_lag_seconds",
        "The ten tenants that wait longest.",
        ("sink", "tenant"),
        each("outbox", "tenants", ("sink", "tenant"), "lag_seconds"),
    ),
    Gauge(
        "livewell_outbox_blocked_keys",
        "Keys whose events are set aside, up to 10,000.",
        ("sink",),
        each("outbox", "sinks", _SINK, "blocked"),
    ),
    Gauge(
        "livewell_outbox_parked_keys",
        "Keys that wait for a person, up to 1,000.",
        ("sink",),
        each("outbox", "sinks", _SINK, "parked"),
    ),
    Gauge("livewell_outbox_dead", "Dead letters by sink and reason.", ("sink", "reason"), _dead),
    Gauge("livewell_outbox_away", "1: relays live, and none of them reaches the sink.", ("sink",), _away),
    Gauge("livewell_outbox_paused", "1: the sink is paused.", ("sink",), _paused),
    Gauge("livewell_outbox_relays", "Living relays.", ("sink",), each("outbox", "sinks", _SINK, "relays")),
    Gauge(
        "livewell_outbox_shards",
        "Shards that a living relay holds, of 64.",
        ("sink",),
        each("outbox", "sinks", _SINK, "shards"),
    ),
    Gauge(
        "livewell_outbox_in_flight",
        "Events that are on their way now.",
        ("sink",),
        each("outbox", "sinks", _SINK, "in_flight"),
    ),
    Gauge(
        "livewell_outbox_delivered_per_minute",
        "Events delivered, per minute over five.",
        ("sink",),
        each("outbox", "sinks", _SINK, "delivered_per_minute"),
    ),
    Gauge(
        "livewell_outbox_other_per_minute",
        "Attempts that failed, were refused or left unknown, per minute over five.",
        ("sink",),
        each("outbox", "sinks", _SINK, "other_per_minute"),
    ),
    Gauge(
        "livewell_outbox_lost_leases",
        "Relays whose lease ran out within the last hour.",
        ("sink",),
        each("outbox", "sinks", _SINK, "lost_leases"),
    ),
    Gauge(
        "livewell_outbox_claims_until_turn",
        "After how many claims every waiting tenant has had its turn.",
        ("sink",),
        each("outbox", "sinks", _SINK, "claims_until_turn"),
    ),
    Gauge("livewell_outbox_days_ahead", "Days from today on for which events have partitions.", (), _ahead),
)
