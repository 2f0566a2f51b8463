"""What stands still in the outbox, in few words each.

How many events wait may come from a sample, whether any does is exact (describe_sinks.sql). So what
is wrong is decided by has_waiting and the oldest event, and the sample only says how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from livewell.telemetry.system_state import Document, part

LATE_SECONDS = 300.0


def stuck(document: Document) -> Iterator[str]:
    """Sinks by name: away, without a relay, paused, late; keys that wait for a person; missing days."""
    outbox = part(document, "outbox")
    for one in outbox.get("sinks", ()):
        if why := _why(one):
            yield f"sink {one['name']}: {waiting_words(one, outbox.get('how'))} wait, {why}"
        elif one["away_since"] and not one["paused_at"]:
            yield f"sink {one['name']} is away for {one['away_seconds'] / 60:.0f} min"
        if one["parked"]:
            or_more = " or more" if one["parked"] >= 1000 else ""
            keys = "key waits" if one["parked"] == 1 else "keys wait"
            yield f"sink {one['name']}: {one['parked']:,}{or_more} {keys} for a person"
    for name in outbox.get("days", {}).get("missing", ()):
        yield f"partition {name} is missing"


def _why(one: Mapping[str, Any]) -> str:
    """Why what waits does, where it should not."""
    if not one["has_waiting"]:
        return ""
    if one["paused_at"]:
        return "it is paused"
    if not one["relays"] and not one["outside"]:
        return "no relay is there"
    if one["away_since"]:
        return f"it is away for {one['away_seconds'] / 60:.0f} min"
    if (one["oldest_seconds"] or 0) > LATE_SECONDS:
        return f"the oldest for {one['oldest_seconds'] / 60:.0f} min"
    return ""


def waiting_words(one: Mapping[str, Any], how: object) -> str:
    """How many events of a sink wait, where at least one does: 1 or more, if the sample has seen none."""
    if not one["waiting"]:
        return "1 or more"
    return f"{'' if how == 'exact' else 'about '}{one['waiting']:,}"
