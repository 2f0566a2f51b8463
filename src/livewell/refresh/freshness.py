"""How many of the followed keys can be trusted now, from the system state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from livewell.telemetry.system_state import Document, part

_TRUSTED = ("fresh", "unverifiable")  # the second: as fresh as a source without times can be


@dataclass(frozen=True, slots=True)
class FreshShare:
    """How many keys are followed, and how many of them can be trusted now."""

    followed: int
    trusted: int

    @property
    def share(self) -> float | None:
        """0 to 1; None when nothing is followed."""
        return self.trusted / self.followed if self.followed else None


def freshness(keys: Mapping[str, int]) -> FreshShare:
    """From the verdicts of a type: {"fresh": 12, "stale": 1, "parked": 100}."""
    followed = sum(n for verdict, n in keys.items() if verdict != "parked")
    return FreshShare(followed, sum(keys.get(verdict, 0) for verdict in _TRUSTED))


def overall(document: Document) -> FreshShare:
    """Of all types together."""
    found = [freshness(one["keys"]) for one in part(document, "refresh").get("types", ())]
    return FreshShare(sum(one.followed for one in found), sum(one.trusted for one in found))
