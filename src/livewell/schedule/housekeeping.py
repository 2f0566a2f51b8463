"""The hourly housekeeping: what capabilities delete, and what they make in advance, in pages."""

from __future__ import annotations

from collections.abc import Sequence

from livewell.capability import Chore, capabilities
from livewell.db import Database
from livewell.errors import DatabaseError
from livewell.schedule.definition import OURS, Duty

HOUSEKEEPING = f"{OURS}housekeeping"
_EVERY_SECONDS = 3600.0
_PAGES_MAX = 100
_LOCKED = "55P03"
_WARN = "SELECT livewell.warn('housekeeping', %s, NULL)"


def housekeeping(database: Database) -> Duty:
    """The duty, for whoever runs a scheduler."""
    return Duty(HOUSEKEEPING, _EVERY_SECONDS, Housekeeping(database).run)


class Housekeeping:
    """Does every chore; answers how many rows and days were made or have gone."""

    def __init__(self, database: Database, chores: Sequence[Chore] | None = None) -> None:
        self._database = database
        self._chores = chores

    async def run(self) -> int:
        """All of them, one after the other."""
        chores = self._chores
        if chores is None:
            chores = [chore for one in capabilities() for chore in one.housekeeping]
        return sum([await self._do(chore) for chore in chores])

    async def _do(self, chore: Chore) -> int:
        try:
            return await self._pages(chore.query, chore.arguments(self._database.settings))
        except DatabaseError as error:
            if error.sqlstate != _LOCKED or chore.if_locked is None:
                raise
            await self._database.call(_WARN, (chore.if_locked,))  # tried again within the next hours
            return 0

    async def _pages(self, query: str, params: tuple[object, ...]) -> int:
        """Call it until it has nothing more to do; answers how much it did."""
        done = 0
        for _ in range(_PAGES_MAX):
            answer = (await self._database.call(query, params))[0][0]
            if not answer:
                break
            done += answer if isinstance(answer, int) else 1
        return done
