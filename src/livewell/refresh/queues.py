"""The names of the queues that refreshes go through.

SQL makes the same names in `refresh_queue()`.
"""

from __future__ import annotations

PREFIX = "refresh."
ALL_QUEUES = f"{PREFIX}*"  # stands for every one of them, as a worker is told


def queue_name(upstream: str, pool: str | None = None) -> str:
    """The queue of an upstream's types, or of those of one pool."""
    return f"{PREFIX}{upstream}.{pool}" if pool else f"{PREFIX}{upstream}"


def is_refresh_queue(queue: str) -> bool:
    """True if refreshes go through this queue, or through some queue that the pattern stands for."""
    return queue.startswith(PREFIX)
