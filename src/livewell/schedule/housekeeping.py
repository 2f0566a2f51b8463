"""What is made in advance and what is let go of, once an hour: the coming days of history, and everything past its time."""

from __future__ import annotations

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError
from livewell.schedule.definition import OURS, Duty

log = structlog.get_logger("livewell.schedule")

HOUSEKEEPING = f"{OURS}housekeeping"
_EVERY_SECONDS = 3600.0
_PAGE = 1000
_PAGES_MAX = 100
_LOCKED = "55P03"


def housekeeping(database: Database) -> Duty:
    """The duty, for whoever runs a scheduler."""
    return Duty(HOUSEKEEPING, _EVERY_SECONDS, Housekeeping(database).run)


class Housekeeping:
    """Politely, and in pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run(self) -> int:
        """All of it; answers how many rows and days were made or have gone."""
        settings, call = self._database.settings, self._database.call
        n = int((await call("SELECT livewell.ensure_history_days(%s)", (settings.history_days_ahead,)))[0][0])
        n += await self._pages(
            "SELECT livewell.prune_queue(%s, %s, %s)", (settings.dead_days, settings.stat_days, _PAGE)
        )
        n += await self._pages("SELECT livewell.prune_limits(%s)", (_PAGE,))
        n += await self._pages("SELECT livewell.prune_refresh(%s, %s)", (settings.stat_days, _PAGE))
        n += await self._pages("SELECT livewell.prune_warnings(%s, %s)", (settings.stat_days, _PAGE))
        n += await self._pages("SELECT livewell.prune_audit(%s, %s)", (settings.audit_days, _PAGE))
        n += await self._pages("SELECT livewell.prune_runs(%s, %s)", (settings.run_days, _PAGE))
        try:
            n += await self._pages("SELECT livewell.drop_history_day(%s)", (settings.history_days,))
        except DatabaseError as error:
            if error.sqlstate != _LOCKED:
                raise
            # Somebody reads the partition: it goes within the next hours.
            await call(
                "SELECT livewell.warn('housekeeping', 'a day of history is read, and was not dropped yet', NULL)"
            )
        return n

    async def _pages(self, query: str, params: tuple[int, ...]) -> int:
        """Call it until it has nothing more to do; answers how much it did."""
        done = 0
        for _ in range(_PAGES_MAX):
            answer = (await self._database.call(query, params))[0][0]
            if not answer:
                break
            done += answer if isinstance(answer, int) else 1
        return done
