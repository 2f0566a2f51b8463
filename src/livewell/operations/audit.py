"""Who did what by hand, when and from where (R25): the rows of livewell.audit, the newest first.

    filters ──▶ list_acts: the index of one filter, 20,000 rows at most ──▶ a page, and where to go on

A page that is not full goes on too, if the look ended before all rows were seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from livewell.db import Database
from livewell.duration import moment
from livewell.errors import InvalidOption

Record = dict[str, Any]

_TEXT_CHARS_MAX = 200
# An instant, or a number of seconds before now by the database's clock.
_LIST = (
    "SELECT * FROM livewell.list_acts(%s, %s, %s, %s, %s, "
    "coalesce(%s::timestamptz, livewell.now() - %s * interval '1 second'), "
    "coalesce(%s::timestamptz, livewell.now() - %s * interval '1 second'))"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which acts.

    actor, subject  as the row has them
    action          one, as queues.pause, or all of a kind: queues
    since, until    an instant, UTC unless it names a zone, or a time ago: 2h, 7d
    """

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    since: str | None = None
    until: str | None = None

    def __post_init__(self) -> None:
        for name in ("actor", "action", "subject"):
            text = getattr(self, name)
            if text is not None and ("\x00" in text or len(text) > _TEXT_CHARS_MAX):
                raise InvalidOption(f"{name} {text[:40]!r}: at most {_TEXT_CHARS_MAX} characters are allowed")
        for name in ("since", "until"):
            _time(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Acts:
    """A page of acts; next: the id to go on before, None at the end."""

    rows: list[Record]
    next: int | None


class Audit:
    """The audit of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acts(self, filters: Filters | None = None, *, before: int | None = None, limit: int = 50) -> Acts:
        """A page of what was done by hand, the newest first."""
        wish = filters or Filters()
        params = (before or None, limit, wish.actor or None, wish.action or None, wish.subject or None)
        times = (*_time("since", wish.since), *_time("until", wish.until))
        found = await self._database.call_dicts(_LIST, (*params, *times))
        rows = [row for row in found if row["at"] is not None]
        go_on = next((row["id"] for row in found if row["at"] is None), None)
        return Acts(rows, rows[-1]["id"] if len(rows) >= limit else go_on)


def _time(name: str, text: str | None) -> tuple[datetime | None, float | None]:
    """An instant, or how many seconds ago; neither if nothing is said."""
    if not text:
        return None, None
    at = moment(name, text)
    return (at, None) if isinstance(at, datetime) else (None, at)
