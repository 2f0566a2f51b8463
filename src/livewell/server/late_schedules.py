"""Which schedules are late, for callers without a login.

The database is asked at most once a second, however many callers ask us.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from livewell.db import Database
from livewell.errors import LivewellError

_FRESH_SECONDS = 1.0
_CALL_SECONDS = 2.0


class Lateness:
    """One answer for all callers within a second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turn = asyncio.Lock()
        self._asked = float("-inf")
        self._found: list[dict[str, Any]] = []
        self._failed: LivewellError | None = None

    async def look(self) -> list[dict[str, Any]]:
        """Names and seconds of what is late, by name."""
        async with self._turn:
            asked = time.monotonic()
            if asked - self._asked >= _FRESH_SECONDS:
                await self._ask()
                self._asked = time.monotonic()
            if self._failed is not None:
                raise self._failed
            return self._found

    async def _ask(self) -> None:
        try:
            rows = await self._database.call(
                "SELECT name, late_seconds FROM livewell.late_schedules()", seconds=_CALL_SECONDS
            )
        except LivewellError as error:
            self._failed = error  # for all who come within a second, too: they must not wait one after the other
            return
        self._failed = None
        self._found = [{"name": name, "late_seconds": round(seconds, 1)} for name, seconds in rows]
