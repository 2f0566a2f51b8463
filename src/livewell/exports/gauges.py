"""Exports as gauges: what waits, what fails, what is stored, who renders. No user and no document is in a label."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from livewell.telemetry.gauge import Gauge, Sample, each
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]

_WORKER = ("name",)


def _of(*path: str) -> Callable[[Document], Iterator[Sample]]:
    """One number of the state."""

    def read(document: Document) -> Iterator[Sample]:
        found = part(document, "exports")
        for name in path[:-1]:
            found = found.get(name, {})
        yield (), found.get(path[-1])

    return read


def _open(document: Document) -> Iterator[Sample]:
    found = part(document, "exports")
    for state in ("waiting", "retrying", "running"):
        if state in found:
            yield (state,), found[state]


def _ended(document: Document) -> Iterator[Sample]:
    hour = part(document, "exports").get("hour", {})
    for state in ("finished", "failed", "cancelled"):
        if state in hour:
            yield (state,), hour[state]


GAUGES = (
    Gauge("livewell_exports_open", "Exports that have not ended, by state; up to 20,000.", ("state",), _open),
    Gauge(
        "livewell_exports_oldest_seconds",
        "How long the oldest export waits for its first attempt.",
        (),
        _of("oldest_seconds"),
    ),
    Gauge("livewell_exports_ended", "Exports that ended within the hour; up to 20,000.", ("state",), _ended),
    Gauge(
        "livewell_exports_failed",
        "Failures within the hour by reason.",
        ("reason",),
        each("exports", "reasons", ("reason",), "n"),
    ),
    Gauge("livewell_exports_per_minute", "Exports finished, per minute over five.", (), _of("hour", "per_minute")),
    Gauge(
        "livewell_exports_p95_seconds", "From request to file, of 95 % within the hour.", (), _of("hour", "p95_seconds")
    ),
    Gauge("livewell_exports_stored_bytes", "Bytes of files, of all users.", (), _of("usage", "stored_bytes")),
    Gauge("livewell_exports_reserved_bytes", "Bytes reserved for files to come.", (), _of("usage", "reserved_bytes")),
    Gauge("livewell_exports_near_quota", "Users who use 90 % of their room.", (), _of("usage", "near_quota")),
    Gauge("livewell_exports_removing", "Files that wait to be removed.", (), _of("cleanup", "removing")),
    Gauge(
        "livewell_exports_cleanup_seconds", "How long the oldest of them waits.", (), _of("cleanup", "oldest_seconds")
    ),
    Gauge(
        "livewell_exports_worker_bytes",
        "Memory of a worker that renders, without its children.",
        ("worker",),
        each("exports", "renderers", _WORKER, "rss_bytes"),
    ),
    Gauge(
        "livewell_exports_children_bytes",
        "Memory of its rendering processes.",
        ("worker",),
        each("exports", "renderers", _WORKER, "children_bytes"),
    ),
    Gauge(
        "livewell_exports_spare_deaths",
        "Rendering processes that died while they started, within ten minutes.",
        ("worker",),
        each("exports", "renderers", _WORKER, "spare_deaths"),
    ),
)
