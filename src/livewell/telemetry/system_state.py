"""The document that livewell.system_state() answers: one part for each state_<name>() function."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def part(document: Document, name: str) -> Document:
    """One part of it; empty where it could not be read, or this login may not."""
    found = document.get(name)
    return found if isinstance(found, dict) and found.get("how") != "failed" else {}
