"""What stands still in the queues, in few words each."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.system_state import Document, part

LONG_SECONDS = 600.0


def stuck(document: Document) -> Iterator[str]:
    """Queues that nobody works, jobs that wait long, delayed jobs past their time, workers that are gone."""
    queue = part(document, "queue")
    for one in queue.get("queues", ()):
        if one["ready"] and (one["paused_at"] or not one["workers"]):
            yield f"queue {one['name']}: {one['ready']:,} wait, {'it is paused' if one['paused_at'] else 'nobody works it'}"
    for one in queue.get("queues", ()):
        if (one["oldest_ready_seconds"] or 0) > LONG_SECONDS and one["workers"] and not one["paused_at"]:
            minutes = one["oldest_ready_seconds"] / 60
            yield f"queue {one['name']}: the first of {one['ready']:,} waits for {minutes:.0f} min"
    if queue.get("overdue_delayed"):
        yield f"{queue['overdue_delayed']:,} delayed jobs are past their time"
    for one in queue.get("workers", ()):
        if one["lease_left_seconds"] < 0:
            yield f"worker {one['name']} is gone, with {one['holds']:,} jobs"
