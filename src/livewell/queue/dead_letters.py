"""Dead letters for people who look: pages by time, and groups. Both are bounded looks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from livewell.db import Database
from livewell.queue.job_filter import JobFilter

Record = dict[str, Any]
LOOK_ROWS = 20_000  # the newest: 30 ms to group them, 60 ms to find none that matches
_GROUPS_MAX = 50
_PAGE = "SELECT livewell.look_dead(%s::jsonb, %s, %s, %s, %s)"
_GROUPS = "SELECT * FROM livewell.group_dead(%s::jsonb, %s, %s)"


@dataclass(frozen=True, slots=True)
class LetterPage:
    """Letters, the newest first; where the next page begins, if there is one."""

    letters: Sequence[Record]
    next_at: str | None
    next_id: int | None
    looked: int


@dataclass(frozen=True, slots=True)
class LetterGroups:
    """Letters by queue, task and reason, the largest groups first.

    is_sample: only the newest LOOK_ROWS letters were counted. others: groups that are not shown.
    """

    groups: Sequence[Record]
    others: int
    is_sample: bool


class DeadLetters:
    """Looks at dead letters."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, matching: JobFilter, *, before: tuple[datetime, int] | None = None, limit: int = 50
    ) -> LetterPage:
        """A page of those that match, before this place."""
        at, job_id = before or (None, None)
        params = (_document(matching), at, job_id, LOOK_ROWS, limit)
        [(found,)] = await self._database.call(_PAGE, params)
        return LetterPage(found["letters"], found["next_at"], found["next_id"], found["looked"])

    async def groups(self, matching: JobFilter) -> LetterGroups:
        """Those that match, counted."""
        rows = await self._database.call_dicts(_GROUPS, (_document(matching), LOOK_ROWS, _GROUPS_MAX))
        looked, groups = (rows[0]["looked"], rows[0]["groups"]) if rows else (0, 0)
        return LetterGroups(rows, groups - len(rows), looked >= LOOK_ROWS)


def _document(matching: JobFilter) -> str:
    return json.dumps(matching.document())
