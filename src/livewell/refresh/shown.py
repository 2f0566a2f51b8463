"""One state of a key as it is shown to everybody: read once, serialised once, shared by all who follow it.

The value stays the text that Postgres gave: numbers are passed on digit by digit, and what nobody takes apart here is not taken apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from livewell.refresh.reading import Reading

Key = tuple[str, str]  # type, key


class Shown:
    """Immutable but for its own serialisation, which is made when it is first asked for."""

    __slots__ = (
        "_brief",
        "_full",
        "checked_at",
        "error",
        "fetched_at",
        "has_value",
        "key",
        "place",
        "reason",
        "source_at",
        "status_version",
        "text",
        "type",
        "verdict",
        "version",
    )

    def __init__(self, place: Key, row: Sequence[Any], *, before: Shown | None = None) -> None:
        """From (verdict, source_at, fetched_at, checked_at, version, status_version, reason, error, value as text); an unchanged value was not sent again."""
        self.place = place
        self.type, self.key = place
        (
            self.verdict,
            self.source_at,
            self.fetched_at,
            self.checked_at,
            self.version,
            self.status_version,
            self.reason,
            self.error,
            self.text,
        ) = row
        if before is not None and before.has_value and before.version == self.version:
            self.text = before.text
        self.has_value: bool = True  # None is one, too
        self._full: bytes | None = None
        self._brief: bytes | None = None

    def same(self, other: Shown | None) -> bool:
        """Nothing that is shown differs."""
        return (
            other is not None
            and other.status_version == self.status_version
            and other.verdict == self.verdict
            and other.version == self.version
        )

    def without_value(self) -> Shown:
        """The same state, whose value would have to be read again."""
        row = (
            self.verdict,
            self.source_at,
            self.fetched_at,
            self.checked_at,
            self.version,
            self.status_version,
            self.reason,
            self.error,
            None,
        )
        light = Shown(self.place, row)
        light.has_value = False
        return light

    def reading(self) -> Reading:
        """As Python has it."""
        return Reading(
            self.type,
            self.key,
            None if self.text is None else json.loads(self.text),
            self.verdict,
            self.source_at,
            self.fetched_at,
            self.checked_at,
            self.version,
            self.reason,
            self.error,
            self.status_version,
        )

    def document(self, *, value: bool) -> bytes:
        """As JSON, with the value or without. Never with the text of an error: that is for operators."""
        made = self._full if value else self._brief
        if made is None:
            made = orjson.dumps(self._dictionary(value=value), option=orjson.OPT_UTC_Z)
            if value:
                self._full = made
            else:
                self._brief = made
        return made

    def _dictionary(self, *, value: bool) -> dict[str, Any]:
        told: dict[str, Any] = {
            "type": self.type,
            "key": self.key,
            "verdict": self.verdict,
            "source_at": _utc(self.source_at),
            "fetched_at": _utc(self.fetched_at),
            "checked_at": _utc(self.checked_at),
            "version": self.version,
            "status_version": self.status_version,
            "reason": self.reason,
        }
        if value:
            told["value"] = None if self.text is None else orjson.Fragment(self.text)
        return told


def missing(place: Key) -> Shown:
    """Of a key whose type is not in the registry (any more)."""
    return Shown(place, ("missing", None, None, None, 0, 0, None, None, None))


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)
