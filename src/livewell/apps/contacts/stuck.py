"""Pairs of contacts that wait for a person, in few words."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.system_state import Document, part
from livewell.words import span


def stuck(document: Document) -> Iterator[str]:
    """One line for all of them."""
    contacts = part(document, "contacts")
    if contacts.get("conflicts"):
        yield (
            f"{contacts['conflicts']:,} pairs of contacts wait for somebody to decide, "
            f"the oldest for {span(contacts['oldest_seconds'])} (tenant {contacts['oldest_tenant']})"
        )
