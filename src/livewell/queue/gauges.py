"""Queues, jobs and workers as gauges."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.gauge import Gauge, Sample, each, figure
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]

_STATES = ("ready", "delayed", "held", "running")
_QUEUE = ("name",)


def _jobs(document: Document) -> Iterator[Sample]:
    for queue in part(document, "queue").get("queues", ()):
        for state in _STATES:
            yield (queue["name"], state), queue[state]


def _paused(document: Document) -> Iterator[Sample]:
    for queue in part(document, "queue").get("queues", ()):
        yield (queue["name"],), int(queue["paused_at"] is not None)


def _dead(document: Document) -> Iterator[Sample]:
    for queue in part(document, "queue").get("queues", ()):
        for reason, n in queue["dead_reasons"].items():
            yield (queue["name"], reason), n


def _workers(document: Document) -> Iterator[Sample]:
    versions: dict[str, int] = {}
    for worker in part(document, "queue").get("workers", ()):
        if worker["lease_left_seconds"] > 0:
            versions[worker["version"]] = versions.get(worker["version"], 0) + 1
    return (((version,), n) for version, n in sorted(versions.items()))


GAUGES = (
    Gauge("livewell_jobs", "Live jobs by queue and state.", ("queue", "state"), _jobs),
    Gauge("livewell_dead_jobs", "Dead letters by queue and reason.", ("queue", "reason"), _dead),
    Gauge("livewell_queue_depth", "Jobs that could run now.", ("queue",), each("queue", "queues", _QUEUE, "ready")),
    Gauge("livewell_queue_paused", "1: the queue is paused.", ("queue",), _paused),
    Gauge(
        "livewell_queue_workers",
        "Workers with a lease that work the queue.",
        ("queue",),
        each("queue", "queues", _QUEUE, "workers"),
    ),
    Gauge(
        "livewell_queue_oldest_ready_seconds",
        "How long the first in line waits.",
        ("queue",),
        each("queue", "queues", _QUEUE, "oldest_ready_seconds"),
    ),
    Gauge(
        "livewell_queue_background_waits_seconds",
        "How long the first in the background lane waits.",
        ("queue",),
        each("queue", "queues", _QUEUE, "background_waits_seconds"),
    ),
    Gauge(
        "livewell_queue_done_per_minute",
        "Jobs that succeeded, per minute over five.",
        ("queue",),
        each("queue", "queues", _QUEUE, "done_per_minute"),
    ),
    Gauge(
        "livewell_queue_other_per_minute",
        "Attempts that ended otherwise, per minute over five.",
        ("queue",),
        each("queue", "queues", _QUEUE, "other_per_minute"),
    ),
    Gauge(
        "livewell_queue_mean_ms",
        "How long a job takes, over five minutes.",
        ("queue",),
        each("queue", "queues", _QUEUE, "mean_ms"),
    ),
    Gauge(
        "livewell_jobs_overdue",
        "Delayed jobs past their time by a minute, up to 10,000.",
        (),
        figure("queue", "overdue_delayed"),
    ),
    Gauge(
        "livewell_history_rows", "Finished jobs that are kept, by the statistics.", (), figure("queue", "history_rows")
    ),
    Gauge("livewell_workers", "Workers with a lease, by version.", ("version",), _workers),
    Gauge(
        "livewell_worker_lease_left_seconds",
        "What is left of a worker's lease; below 0: expired.",
        ("worker", "id"),
        each("queue", "workers", ("name", "id"), "lease_left_seconds"),
    ),
    Gauge(
        "livewell_worker_holds",
        "Jobs a worker holds.",
        ("worker", "id"),
        each("queue", "workers", ("name", "id"), "holds"),
    ),
)
