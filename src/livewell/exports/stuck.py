"""Exports that stand still, for `livewell state`."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.finding import span
from livewell.telemetry.system_state import Document, part

_WAIT_SECONDS = 300.0


def stuck(document: Document) -> Iterator[str]:
    """What waits, what cannot be stored, what is not cleaned."""
    exports = part(document, "exports")
    oldest = exports.get("oldest_seconds")
    if oldest is not None and oldest > _WAIT_SECONDS:
        yield f"{exports['waiting']:,} exports wait, the oldest for {span(oldest)}"
    for one in exports.get("renderers", ()):
        if one["store_reason"] is not None:
            yield f"worker {one['name']} has not reached the store of exports for {span(one['store_seconds'])}"
    late = exports.get("cleanup", {}).get("oldest_seconds")
    if late is not None and late > 2 * _WAIT_SECONDS:
        yield f"files of exports wait to be removed for {span(late)}"
