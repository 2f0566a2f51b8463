"""Singletons, ticks and schedules as gauges."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.gauge import Gauge, Sample, each
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]


def _paused_schedules(document: Document) -> Iterator[Sample]:
    for one in part(document, "schedules").get("schedules", ()):
        yield (one["name"],), int(one["state"] == "paused")


def _late(document: Document) -> Iterator[Sample]:
    """Every one that there is, and a loop that never turned."""
    found = part(document, "schedules")
    late = {one["name"] for one in found.get("late", ())}
    for name in sorted(late | {one["name"] for one in found.get("schedules", ())}):
        yield (name,), int(name in late)


def _ended_badly(document: Document) -> Iterator[Sample]:
    for one in part(document, "schedules").get("schedules", ()):
        if one["last"] is not None:
            yield (one["name"],), int(one["last"] in ("failed", "crashed"))


GAUGES = (
    Gauge(
        "livewell_singleton_held",
        "1: somebody holds the lease.",
        ("singleton", "holder"),
        each("leases", "singletons", ("name", "holder"), "held"),
    ),
    Gauge(
        "livewell_singleton_held_seconds",
        "For how long one term holds it.",
        ("singleton",),
        each("leases", "singletons", ("name",), "held_seconds"),
    ),
    Gauge(
        "livewell_tick_age_seconds",
        "Since internal upkeep last ran.",
        ("tick",),
        each("leases", "ticks", ("name",), "last_seconds"),
    ),
    Gauge("livewell_schedule_late", "1: it has not run when it should have.", ("schedule",), _late),
    Gauge("livewell_schedule_paused", "1: it is paused.", ("schedule",), _paused_schedules),
    Gauge("livewell_schedule_failed", "1: its last run failed or crashed.", ("schedule",), _ended_badly),
    Gauge(
        "livewell_schedule_due_seconds",
        "Until its next slot; below 0: overdue.",
        ("schedule",),
        each("schedules", "schedules", ("name",), "due_seconds"),
    ),
)
