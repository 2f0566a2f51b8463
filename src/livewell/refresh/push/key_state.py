"""One state of a key as it is shown to everybody.

It is read once, serialised once, and shared by all who follow the key.

The value stays the text that Postgres gave. It is not parsed here, so numbers are passed on digit
by digit.

A state knows until when its verdict holds, counted from before the database was asked: an answer
that was delayed on its way does not become fresher by that. Code that shows a state must show
now(), so a state that was kept here through an outage is never shown as fresh.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from livewell.refresh.reading import HOLDING, Reading
from livewell.refresh.verdict_clock import clock

Pair = tuple[str, str]  # type, key
Numbers = Literal["number", "string"]  # how the numbers of a value are written: as JSON numbers, or as texts

# The database itself says when a verdict turns; only if it has said nothing for so long is it
# turned here.
GRACE_SECONDS = 0.5


class KeyState:
    """The state of one key: immutable, except for its serialisations.

    Each serialisation is made when it is first asked for.
    """

    __slots__ = (
        "_age_seconds",
        "_asked_at",
        "_made",
        "checked_at",
        "error",
        "fetched_at",
        "has_value",
        "key",
        "pair",
        "reason",
        "source_at",
        "stale_at",
        "status_version",
        "text",
        "turns_seconds",
        "type",
        "verdict",
        "version",
    )

    def __init__(self, pair: Pair, row: Sequence[Any], *, asked_at: float, before: KeyState | None = None) -> None:
        """Make a state from a row of the database, which was asked at asked_at.

        The row is (verdict, source_at, fetched_at, checked_at, version, status_version, reason,
        error, value as text, turns_at, turns_seconds, age_seconds). A value that has not changed
        was not sent again: it is taken from `before`.
        """
        self.pair = pair
        self.type, self.key = pair
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
            self.stale_at,
            self.turns_seconds,
            self._age_seconds,
        ) = row
        if self.verdict not in HOLDING:
            self.stale_at = None
        if before is not None and before.has_value and before.version == self.version:
            self.text = before.text
        self.has_value: bool = True  # None is one, too
        self._asked_at = asked_at
        self._made: dict[tuple[bool, Numbers], bytes] = {}

    def same(self, other: KeyState | None) -> bool:
        """Nothing that is shown differs."""
        return (
            other is not None
            and other.status_version == self.status_version
            and other.verdict == self.verdict
            and other.version == self.version
            and other.stale_at == self.stale_at
        )

    def without_value(self) -> KeyState:
        """The same state, whose value would have to be read again."""
        light = self._copy(self.verdict)
        light.text = None
        light.has_value = False
        return light

    def with_value(self, before: KeyState | None) -> KeyState:
        """Return this state, with the value of an earlier one if its own was let go.

        Only if no other value was stored since.
        """
        if not self.has_value and before is not None and before.version == self.version:
            self.text, self.has_value = before.text, before.has_value
        return self

    @property
    def left_seconds(self) -> float | None:
        """How long the verdict still holds.

        Less than nothing when its time is over, None when time alone does not change it.
        """
        return None if self.stale_at is None else self.turns_seconds - (clock() - self._asked_at)

    def now(self) -> KeyState:
        """Return the state that may be shown now.

        It is stale if the time of the verdict is over and the database has not given a new verdict.
        """
        left = self.left_seconds
        return self if left is None or left > -GRACE_SECONDS else self._copy("stale")

    def _copy(self, verdict: str) -> KeyState:
        row = (
            verdict,
            self.source_at,
            self.fetched_at,
            self.checked_at,
            self.version,
            self.status_version,
            self.reason,
            self.error,
            self.text,
            self.stale_at,
            self.turns_seconds,
            self._age_seconds,
        )
        copy = KeyState(self.pair, row, asked_at=self._asked_at)
        copy.has_value = self.has_value
        return copy

    def reading(self, value: Any) -> Reading:
        """As Python has it, with the value that its text means."""
        return Reading(
            self.type,
            self.key,
            value,
            self.verdict,
            self.source_at,
            self.fetched_at,
            self.checked_at,
            self.version,
            self.reason,
            self.error,
            self.status_version,
            self.stale_at,
            self.left_seconds,
        )

    def document(self, *, value: bool = True, numbers: Numbers = "number") -> bytes:
        """As JSON, with the value or without; with the seconds that are left at this instant.

        Never with the text of an error: that is for operators.
        """
        left, age = self.left_seconds, self._age_seconds
        return b'%b,"fresh_for_seconds":%b,"age_seconds":%b}' % (
            self.body(value=value, numbers=numbers),
            b"null" if left is None else b"%.3f" % max(0.0, left),
            b"null" if age is None else b"%.3f" % (age + clock() - self._asked_at),
        )

    def body(self, *, value: bool, numbers: Numbers) -> bytes:
        """All of the document that does not change while time passes.

        Made once, however many it is sent to.
        """
        made = self._made.get((value, numbers))
        if made is None:
            told = self._dictionary(numbers if value else None)
            made = self._made[value, numbers] = orjson.dumps(told, option=orjson.OPT_UTC_Z)[:-1]
        return made

    def _dictionary(self, numbers: Numbers | None) -> dict[str, Any]:
        told: dict[str, Any] = {
            "type": self.type,
            "key": self.key,
            "verdict": self.verdict,
            "source_at": _utc(self.source_at),
            "fetched_at": _utc(self.fetched_at),
            "checked_at": _utc(self.checked_at),
            "stale_at": _utc(self.stale_at),
            "version": self.version,
            "status_version": self.status_version,
            "reason": self.reason,
        }
        if numbers is not None:
            told["value"] = None if self.text is None else _written(self.text, numbers)
        return told


def missing(pair: Pair) -> KeyState:
    """Of a key whose type is not in the registry (any more)."""
    row = ("missing", None, None, None, 0, 0, None, None, None, None, None, None)
    return KeyState(pair, row, asked_at=clock())


def _written(text: str, numbers: Numbers) -> Any:
    """The database's own text, or the same with each number as a text of its digits."""
    return orjson.Fragment(text) if numbers == "number" else json.loads(text, parse_float=str, parse_int=str)


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.astimezone(UTC)
