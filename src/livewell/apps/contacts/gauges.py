"""Contacts as gauges."""

from __future__ import annotations

from collections.abc import Iterator

from livewell.telemetry.gauge import Gauge, Sample
from livewell.telemetry.system_state import Document, part

__all__ = ["GAUGES"]


def _estimates(document: Document) -> Iterator[Sample]:
    found = part(document, "contacts")
    for what in ("contacts", "identities"):
        if f"{what}_estimate" in found:
            yield (what,), found[f"{what}_estimate"]


def _waiting(document: Document) -> Iterator[Sample]:
    found = part(document, "contacts")
    if "conflicts" in found:
        yield (), found["conflicts"]


def _oldest(document: Document) -> Iterator[Sample]:
    found = part(document, "contacts")
    if "conflicts" in found:
        yield (), found["oldest_seconds"] or 0


GAUGES = (
    Gauge(
        "livewell_contacts_estimate", "Contacts and identities, as the planner estimates them.", ("what",), _estimates
    ),
    Gauge("livewell_contact_conflicts", "Pairs of contacts that wait for a person, up to 1,000.", (), _waiting),
    Gauge("livewell_contact_conflict_oldest_seconds", "How long the oldest of them waits.", (), _oldest),
)
