"""Acts on all that match a filter: counted, asked for, followed, cancelled.

    counted ──asked for──▶ running ──nothing is left──▶ done
                             ├──somebody cancels it──▶ cancelled
                             └──a page cannot be done──▶ failed

The database keeps the act; any worker does its next page (operations/bulk_acts.py). Whoever asks
for the same while it is unfinished gets the same act, and is told what it leaves out; so does
whoever repeats a request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

from livewell.db import Database
from livewell.db.acts import actor, located, origin
from livewell.db.nudge import Nudger
from livewell.errors import ActNotFound, InvalidOption
from livewell.queue.job_filter import JobFilter
from livewell.queue.nudges import ACTS
from livewell.words import number

Record = dict[str, Any]
Ended = Literal["cancelled", "ended"]
How = Literal["exact", "more", "looked"]

ALL = "all of them"  # confirms an act where nobody knows the number

_COUNT = "SELECT n, how FROM livewell.count_matching(%s, %s::jsonb, %s)"
# The origin is an argument of the call, so it is set before the call.
_BEGUN = (
    "SELECT b.act_id, b.is_new, b.is_twin, b.asked_by, b.before_at, b.expected, b.how "
    "FROM (SELECT set_config('livewell.origin', %s, true) AS origin) p CROSS JOIN LATERAL "
)
_BEGIN = _BEGUN + "livewell.begin_bulk_act(%s, %s::jsonb, %s, %s, %s, %s, coalesce(%s, p.origin)) b"
_CONFIRM = _BEGUN + "livewell.confirm_bulk_act(%s, %s::jsonb, %s, %s, %s, coalesce(%s, p.origin)) b"
_LIST = "SELECT * FROM livewell.list_bulk_acts(%s, %s, %s)"
_END = located("livewell.end_bulk_act(%s, NULL, %s)")


class BulkAction(StrEnum):
    """What can be done to all that match.

    cancel and hasten (run now) are about live jobs, redrive and discard about dead letters.
    """

    CANCEL = "cancel"
    HASTEN = "hasten"
    REDRIVE = "redrive"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Matching:
    """How many match.

    how: exact; more than n; or so many of those that were looked at, which were not all.
    """

    n: int
    how: How

    @property
    def is_exact(self) -> bool:
        """True if it is a number that can be confirmed."""
        return self.how == "exact"

    @property
    def words(self) -> str:
        """What is known of the number."""
        if self.is_exact:
            return number(self.n)
        if self.how == "more":
            return f"more than {number(self.n)}"
        return f"at least {number(self.n)}" if self.n else "an unknown number of"


@dataclass(frozen=True, slots=True)
class Begun:
    """The act that does it.

    is_new     this request began it
    is_twin    somebody else asked for the same, and it is unfinished; neither: this request did, before
    before_at  what was made, or died, later is not touched by it
    found      how many matched when it was asked for
    """

    id: int
    is_new: bool
    is_twin: bool
    asked_by: str
    before_at: datetime
    found: Matching

    @property
    def words(self) -> str:
        """What became of the request."""
        if self.is_new:
            return f"Act {self.id} has begun."
        if not self.is_twin:
            return f"It was asked for already: this is act {self.id}."
        at = f"{self.before_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        return (
            f"Act {self.id} is doing the same already, and no other was begun. {self.asked_by} asked for it when "
            f"{self.found.words} matched; it does not touch what was made or died after {at}. "
            "Ask again when it has ended, if that is meant too."
        )


class BulkActs:
    """For operators: pages, HTTP and code."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger

    async def count(self, action: BulkAction, matching: JobFilter, *, before: datetime | None = None) -> Matching:
        """How many it would touch; nothing is changed."""
        [row] = await self._database.call(_COUNT, (action.value, _document(matching), before))
        return Matching(*row)

    async def begin(
        self,
        action: BulkAction,
        matching: JobFilter,
        *,
        key: str | None = None,
        before: datetime | None = None,
        expected: int = 0,
        how: How = "exact",
    ) -> Begun:
        """Ask for it. What was made, or died, after `before` is not touched."""
        params = (origin(), action.value, _document(matching), key, before, expected, how, actor())
        [row] = await self._database.call(_BEGIN, params)
        self._nudger.nudge(ACTS)
        return _begun(row)

    async def confirm(
        self,
        action: BulkAction,
        matching: JobFilter,
        *,
        expected: int | None,
        key: str | None = None,
        before: datetime | None = None,
    ) -> Begun:
        """Ask for it, if no more match than the caller expects; else nothing is done.

        None: all of them, however many. A number is refused where nobody knows how many match.
        """
        params = (origin(), action.value, _document(matching), key, before, expected, actor())
        [row] = await self._database.call(_CONFIRM, params)
        if row[0] is None:
            raise InvalidOption(_unconfirmed(Matching(row[5], row[6]), expected or 0))
        self._nudger.nudge(ACTS)
        return _begun(row)

    async def list(self, *, before: int | None = None, limit: int = 50) -> Sequence[Record]:
        """A page of acts, the newest first."""
        return await self._database.call_dicts(_LIST, (None, before or None, limit))

    async def show(self, act_id: int) -> Record:
        """One act with its progress."""
        rows = await self._database.call_dicts(_LIST, (act_id, None, 1))
        if not rows:
            raise ActNotFound(_unknown(act_id))
        return rows[0]

    async def cancel(self, act_id: int) -> Ended:
        """Stop it; what is done stays done. ended: it had ended already."""
        answer = (await self._database.call(_END, (origin(), act_id, actor())))[0][0]
        if answer == "unknown":
            raise ActNotFound(_unknown(act_id))
        ended: Ended = answer
        return ended


def _begun(row: tuple[Any, ...]) -> Begun:
    act_id, is_new, is_twin, asked_by, before_at, expected, how = row
    return Begun(act_id, is_new, is_twin, asked_by, before_at, Matching(expected, how))


def _unconfirmed(found: Matching, expected: int) -> str:
    if found.is_exact:
        return f"{found.words} match by now, and you confirmed {number(expected)}: nothing was done. Count again"
    return (
        f"{found.words} match, so the number {number(expected)} confirms nothing: nothing was done. "
        f'Confirm with the words "{ALL}"'
    )


def _document(matching: JobFilter) -> str:
    return json.dumps(matching.document())


def _unknown(act_id: int) -> str:
    return f"act {act_id}: there is none of that number; acts are kept for some months"
