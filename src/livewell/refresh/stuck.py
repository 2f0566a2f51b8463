"""Types whose keys fail, in few words each."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.system_state import Document, part


def stuck(document: Document) -> Iterator[str]:
    """How many keys of each type fail."""
    for one in part(document, "refresh").get("types", ()):
        if one["keys"].get("failing"):
            yield f"type {one['name']}: {one['keys']['failing']:,} keys fail"
