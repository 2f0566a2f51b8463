"""Limiters that let nothing through, in few words each."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.system_state import Document, part


def stuck(document: Document) -> Iterator[str]:
    """Calls that a breaker, a budget or the upstream itself has stopped."""
    for one in part(document, "limits").get("limiters", ()):
        if one["active"] and one["waits_for"] in ("breaker", "budget", "upstream", "probe"):
            yield f"calls to {one['name']} {one['credential']}".rstrip() + f" are stopped: {one['waits_for']}"
