"""What was tolerated, and how often: the rows of livewell.warn(), for people."""

from __future__ import annotations

from typing import Any, Self

from livewell.db import Database
from livewell.db.open_app import OpenApp

Record = dict[str, Any]


class Warnings:
    """The operator's view of warnings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database)

    async def page(
        self, *, hours: int = 24, data_type: str | None = None, after: str = "", limit: int = 50
    ) -> list[Record]:
        """A page by place and kind; `cursor` of the last one is where the next page begins."""
        return await self._database.call_dicts(
            "SELECT * FROM livewell.list_warnings(%s, %s, %s, %s)", (hours, data_type, after, limit)
        )
