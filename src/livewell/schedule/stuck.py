"""Schedules that are late, in few words each."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.system_state import Document, part


def stuck(document: Document) -> Iterator[str]:
    """Each late schedule, and by how much."""
    for one in part(document, "schedules").get("late", ()):
        yield f"schedule {one['name']} is late by {one['late_seconds'] / 60:.0f} min"
