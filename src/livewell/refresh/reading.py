"""What is known of a key at one instant: its value, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Reading:
    """A value with its provenance (X1). value is a row, a list of rows for sets and series, or None when there is none.

    verdict: fresh, stale, lagging (the source itself is late), unverifiable (the source gives no time), missing, failing. source_at: what the source says of its own time; fetched_at: when
    this content was fetched; checked_at: when it was last confirmed; version grows with the content; reason: why the last attempt failed, if it did.
    """

    type: str
    key: str
    value: Any
    verdict: str
    source_at: datetime | None
    fetched_at: datetime | None
    checked_at: datetime | None
    version: int
    reason: str | None
    error: str | None = None
    status_version: int = field(default=0, compare=False)  # grows with anything that is shown

    @property
    def usable(self) -> bool:
        """There is a value, and nothing says that it is too old."""
        return self.value is not None and self.verdict in ("fresh", "unverifiable")


def reading_of(kind: str, key: str, row: Sequence[Any]) -> Reading:
    """From (verdict, source_at, fetched_at, checked_at, version, status_version, reason, error, value)."""
    verdict, source_at, fetched_at, checked_at, version, status_version, reason, error, value = row
    return Reading(kind, key, value, verdict, source_at, fetched_at, checked_at, version, reason, error, status_version)
