"""Which jobs or dead letters an act is about: the filter of lists, of counts and of acts on many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from livewell.duration import seconds
from livewell.errors import InvalidOption

_TEXT_CHARS_MAX = 200
_AGO_SECONDS_MAX = 400 * 86400.0


class BulkAction(StrEnum):
    """What can be done to all that match.

    cancel and hasten (run now) are about live jobs, redrive and discard about dead letters.
    """

    CANCEL = "cancel"
    HASTEN = "hasten"
    REDRIVE = "redrive"
    DISCARD = "discard"

    @property
    def is_of_dead(self) -> bool:
        """True if it is about dead letters."""
        return self in (BulkAction.REDRIVE, BulkAction.DISCARD)


@dataclass(frozen=True, slots=True)
class ActFilter:
    """Everything matches unless a field says otherwise.

    state   of live jobs only
    reason  of dead letters only
    since   when a job was made, or a letter died: from here on
    until   and before here
    """

    queue: str | None = None
    task: str | None = None
    state: str | None = None
    group: str | None = None
    key: str | None = None
    reason: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str], now: datetime | None = None) -> Self:
        """As an address or a form has it.

        since and until: an instant, or how long ago ("12h"), which needs to know what time it is in
        the database.
        """
        found = {name: (query.get(name) or "").strip() for name in NAMES}
        for name, text in found.items():
            if len(text) > _TEXT_CHARS_MAX or "\x00" in text:
                raise InvalidOption(f"{name}: {_TEXT_CHARS_MAX} characters are allowed, and no NUL")
        values: dict[str, Any] = {name: text or None for name, text in found.items()}
        for name in TIMES:
            values[name] = _instant(name, found[name], now) if found[name] else None
        return cls(**values)

    def to_query(self) -> dict[str, str]:
        """The fields that are set, for an address or hidden fields of a form."""
        return {
            name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(self).items()
            if value is not None
        }

    def is_everything(self) -> bool:
        """True if no field is set."""
        return not self.to_query()


NAMES = tuple(one.name for one in fields(ActFilter))
TIMES = ("since", "until")


def needs_now(query: Mapping[str, str]) -> bool:
    """True if a time is given as how long ago."""
    return any(_is_ago((query.get(name) or "").strip()) for name in TIMES)


def _is_ago(text: str) -> bool:
    return bool(text) and text[0].isdigit() and text[-1].isalpha() and "T" not in text and not text.endswith("Z")


def _instant(name: str, text: str, now: datetime | None) -> datetime:
    if _is_ago(text) and now is not None:
        ago = seconds(text, name)
        if ago > _AGO_SECONDS_MAX:
            raise InvalidOption(f"{name} {text!r}: at most 400 days ago")
        return now - timedelta(seconds=ago)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOption(
            f'{name} {text!r}: write an instant such as "2026-11-18 03:00" (UTC), or how long ago, such as "12h"'
        ) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
