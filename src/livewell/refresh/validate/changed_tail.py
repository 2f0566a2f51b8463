"""Of a history only the tail that can still change is fetched again. Pure.

This module says from which day on, and whether what came agrees with what is stored.

    ├── settled, not asked for again ──┼── settled, asked for again ──┼── may still change ──┤ newest day stored
                                  newest − 2 windows             newest − window

The settled days that are asked for again must be what they were. If they are not (a split rewrites
every price since the beginning), the stored history and the answer contradict each other, and the
whole history is asked for. The content hash of such a type has two halves, both of days up to two
windows before the newest: all of them, and the settled ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from livewell.refresh.definition.model import JSON, TypeDefinition

_HALF_BYTES = hashlib.sha256().digest_size

Rows = list[dict[str, JSON]]
Hash = Callable[[Rows], bytes]


@dataclass(frozen=True, slots=True)
class Tail:
    """What is stored of a history: its newest day, and the hash of its settled days."""

    newest: date
    settled: bytes

    def since(self, days: int) -> date:
        """The first day to ask for."""
        return self.newest - timedelta(days=2 * days)


def stored_tail(definition: TypeDefinition, source_at: datetime | None, content_hash: bytes | None) -> Tail | None:
    """The tail of what is stored; None if the type has no revision window, or nothing is stored."""
    moment = definition.answer.source_time
    if definition.fetch.revision_days is None or moment is None or source_at is None:
        return None
    if content_hash is None or len(content_hash) != 2 * _HALF_BYTES:
        return None
    return Tail(source_at.astimezone(ZoneInfo(moment.zone)).date(), content_hash[_HALF_BYTES:])


def tail_hash(window: int, days: Sequence[date], rows: Rows, hashed: Hash) -> bytes:
    """The hash of the tail of an answer."""
    newest = max(days)
    since = newest - timedelta(days=2 * window)
    recent = [row for day, row in zip(days, rows, strict=True) if day >= since]
    return hashed(recent) + settled_hash(window, newest, days, rows, hashed)


def settled_hash(window: int, newest: date, days: Sequence[date], rows: Rows, hashed: Hash) -> bytes:
    """The hash of the settled days before this newest one, as far as they are asked for again."""
    first, last = newest - timedelta(days=2 * window), newest - timedelta(days=window)
    return hashed([row for day, row in zip(days, rows, strict=True) if first <= day < last])


def days_of(rows: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], datetime], zone: str) -> list[date]:
    """The day of each row, as the source says it."""
    where = ZoneInfo(zone)
    return [read(row).astimezone(where).date() for row in rows]
