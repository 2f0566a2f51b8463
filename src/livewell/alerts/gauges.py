"""Alerts, rules and channels as gauges."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.gauge import Gauge, Sample, each
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]


def _alerts(document: Document) -> Iterator[Sample]:
    for one in part(document, "alerts").get("rules", ()):
        for state in ("fired", "cooling"):
            yield (one["name"], one["level"], state), one[state]


def _disabled(document: Document) -> Iterator[Sample]:
    for one in part(document, "alerts").get("channels", ()):
        yield (one["name"],), int(one["disabled_at"] is not None)


GAUGES = (
    Gauge("livewell_alerts", "Alerts that have fired, or cool down, by rule.", ("rule", "level", "state"), _alerts),
    Gauge(
        "livewell_alert_rule_failed",
        "1: the rule could not be evaluated.",
        ("rule",),
        each("alerts", "rules", ("name",), "failed"),
    ),
    Gauge("livewell_alert_channel_disabled", "1: its receiver is gone.", ("channel",), _disabled),
    Gauge(
        "livewell_alert_channel_waiting",
        "Notifications that have not been told yet, up to 1,000.",
        ("channel",),
        each("alerts", "channels", ("name",), "waiting"),
    ),
)
