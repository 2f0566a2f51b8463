"""What stands still in the queues, in few words each.

How many jobs wait comes from a sample, whether any does is exact (describe_queues.sql). So what is
wrong is decided by has_ready and the first in line, and the sample only says how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from livewell.telemetry.system_state import Document, part

LONG_SECONDS = 600.0


def stuck(document: Document) -> Iterator[str]:
    """Queues that nobody works, jobs that wait long, delayed jobs past their time, workers that are gone."""
    queue = part(document, "queue")
    how = queue.get("how")
    for one in queue.get("queues", ()):
        if one["has_ready"] and (one["paused_at"] or not one["workers"]):
            why = "it is paused" if one["paused_at"] else "nobody works it"
            yield f"queue {one['name']}: {ready_words(one, how)} wait, {why}"
    for one in queue.get("queues", ()):
        if (one["oldest_ready_seconds"] or 0) > LONG_SECONDS and one["workers"] and not one["paused_at"]:
            minutes = one["oldest_ready_seconds"] / 60
            yield f"queue {one['name']}: the first of {ready_words(one, how)} waits for {minutes:.0f} min"
    if queue.get("overdue_delayed"):
        yield f"{queue['overdue_delayed']:,} delayed jobs are past their time"
    for one in queue.get("workers", ()):
        if one["lease_left_seconds"] < 0:
            yield f"worker {one['name']} is gone, with {one['holds']:,} jobs"


def ready_words(one: Mapping[str, Any], how: object) -> str:
    """How many jobs of a queue are ready, where at least one is: 1 or more, if the sample has seen none."""
    if not one["ready"]:
        return "1 or more"
    return f"{'' if how == 'exact' else 'about '}{one['ready']:,}"
