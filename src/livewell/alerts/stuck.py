"""Alerts that have fired and channels that reach nobody, in few words each."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.system_state import Document, part


def stuck(document: Document) -> Iterator[str]:
    """By rule, then by channel."""
    alerts = part(document, "alerts")
    for one in alerts.get("rules", ()):
        if one["fired"]:
            yield f"alert {one['level']} {one['name']}: {one['fired']:,} fired"
    for one in alerts.get("channels", ()):
        if one["disabled_at"]:
            yield f"alert channel {one['name']} is disabled: its receiver is gone"
