"""The whole system in one query (S6), and what of it a person looks at first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from livewell.db import Database

Document = dict[str, Any]

_TRUSTED = ("fresh", "unverifiable")  # the second: as fresh as a source without times can be
_LONG_SECONDS = 600.0
_STATE = "SELECT livewell.system_state()"


async def read_state(database: Database) -> Document:
    """What livewell.system_state() says: one document with a part for each package, and took_ms: how long asking took."""
    began = time.monotonic()
    [(document,)] = await database.call(_STATE)
    return {**document, "took_ms": round((time.monotonic() - began) * 1000, 1)}


@dataclass(frozen=True, slots=True)
class Freshness:
    """Of the keys that are followed, how many can be trusted now."""

    followed: int
    trusted: int

    @property
    def share(self) -> float | None:
        """0 to 1; None when nothing is followed."""
        return self.trusted / self.followed if self.followed else None


def freshness(keys: Mapping[str, int]) -> Freshness:
    """From the verdicts of a type: {"fresh": 12, "stale": 1, "parked": 100}."""
    followed = sum(n for verdict, n in keys.items() if verdict != "parked")
    return Freshness(followed, sum(keys.get(verdict, 0) for verdict in _TRUSTED))


def overall(document: Document) -> Freshness:
    """Of all types together."""
    found = [freshness(one["keys"]) for one in part(document, "refresh").get("types", ())]
    return Freshness(sum(one.followed for one in found), sum(one.trusted for one in found))


def part(document: Document, name: str) -> Document:
    """One part of it; empty where it could not be read, or this login may not."""
    found = document.get(name)
    return found if isinstance(found, dict) and found.get("how") != "failed" else {}


def stuck(document: Document) -> list[str]:
    """What stands still now, in few words each; `livewell doctor` says more."""
    queue, refresh = part(document, "queue"), part(document, "refresh")
    said = [
        f"queue {one['name']}: {one['ready']:,} wait, {'it is paused' if one['paused_at'] else 'nobody works it'}"
        for one in queue.get("queues", ())
        if one["ready"] and (one["paused_at"] or not one["workers"])
    ]
    said += [
        f"queue {one['name']}: the first of {one['ready']:,} waits for {one['oldest_ready_seconds'] / 60:.0f} min"
        for one in queue.get("queues", ())
        if (one["oldest_ready_seconds"] or 0) > _LONG_SECONDS and one["workers"] and not one["paused_at"]
    ]
    if queue.get("overdue_delayed"):
        said.append(f"{queue['overdue_delayed']:,} delayed jobs are past their time")
    said += [
        f"worker {one['name']} is gone, with {one['holds']:,} jobs"
        for one in queue.get("workers", ())
        if one["lease_left_seconds"] < 0
    ]
    said += [
        f"calls to {one['name']} {one['credential']}".rstrip() + f" are stopped: {one['waits_for']}"
        for one in part(document, "limits").get("limiters", ())
        if one["active"] and one["waits_for"] in ("breaker", "budget", "upstream", "probe")
    ]
    said += [
        f"type {one['name']}: {one['keys']['failing']:,} keys fail"
        for one in refresh.get("types", ())
        if one["keys"].get("failing")
    ]
    said += [
        f"schedule {one['name']} is late by {one['late_seconds'] / 60:.0f} min"
        for one in part(document, "schedules").get("late", ())
    ]
    alerts = part(document, "alerts")
    said += [
        f"alert {one['level']} {one['name']}: {one['fired']:,} fired" for one in alerts.get("rules", ()) if one["fired"]
    ]
    said += [
        f"alert channel {one['name']} is disabled: its receiver is gone"
        for one in alerts.get("channels", ())
        if one["disabled_at"]
    ]
    said += [f"the part {name} could not be read: {error}" for name, error in failed_parts(document).items()]
    return said


def failed_parts(document: Document) -> dict[str, str]:
    """Parts that could not be read, and why."""
    return {
        name: str(value.get("error", ""))
        for name, value in document.items()
        if isinstance(value, dict) and value.get("how") == "failed"
    }


def how_known(document: Document, name: str) -> str:
    """`exact`, or `estimated, 4 s old`."""
    found = part(document, name)
    age = found.get("sample_age_seconds")
    return str(found.get("how", "unknown")) + (f", {max(age, 0):.0f} s old" if age is not None else "")
