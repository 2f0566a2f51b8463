"""Acts on all that match a filter: counted, asked for, followed, cancelled.

    counted ──asked for──▶ running ──nothing is left──▶ done
                             ├──somebody cancels it──▶ cancelled
                             └──a page cannot be done──▶ failed

The database keeps the act; any worker does its next page (operations/bulk_acts.py). Whoever asks
for the same while it is unfinished gets the same act, and so does whoever repeats a request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
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

_COUNT = "SELECT n, how FROM livewell.count_matching(%s, %s::jsonb, %s)"
# The origin is an argument of the call, so it is set before the call.
_BEGIN = (
    "SELECT b.act_id, b.is_new FROM (SELECT set_config('livewell.origin', %s, true) AS origin) p CROSS JOIN LATERAL "
    "livewell.begin_bulk_act(%s, %s::jsonb, %s, %s, %s, coalesce(%s, p.origin)) b"
)
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
    how: Literal["exact", "more", "looked"]

    @property
    def words(self) -> str:
        """10,000+ where there are more."""
        return number(self.n) + ("" if self.how == "exact" else "+")


@dataclass(frozen=True, slots=True)
class Begun:
    """The act that does it, and whether this request began it."""

    id: int
    is_new: bool


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
    ) -> Begun:
        """Ask for it. What was made, or died, after `before` is not touched."""
        params = (origin(), action.value, _document(matching), key, before, expected, actor())
        [row] = await self._database.call(_BEGIN, params)
        self._nudger.nudge(ACTS)
        return Begun(*row)

    async def confirm(
        self,
        action: BulkAction,
        matching: JobFilter,
        *,
        expected: int,
        key: str | None = None,
        before: datetime | None = None,
    ) -> Begun:
        """Ask for it, if no more match than the caller expects; else nothing is done."""
        found = await self.count(action, matching, before=before)
        if found.n > expected:
            raise InvalidOption(
                f"{found.words} match by now, and you confirmed {number(expected)}: nothing was done. Count again"
            )
        return await self.begin(action, matching, key=key, before=before, expected=found.n)

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


def _document(matching: JobFilter) -> str:
    return json.dumps(matching.document())


def _unknown(act_id: int) -> str:
    return f"act {act_id}: there is none of that number; acts are kept for some months"
