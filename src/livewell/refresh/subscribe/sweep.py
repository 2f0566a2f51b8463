"""End the sessions of viewers who left without a word, every minute."""

from __future__ import annotations

from livewell.db import Database
from livewell.schedule.definition import OURS, Duty

SWEEP = f"{OURS}sweep"
_EVERY_SECONDS = 60.0
_PAGE = 1000
_PAGES_MAX = 1000


def sweeping(database: Database) -> Duty:
    """Make the duty that ends the sessions of viewers who left, page by page.

    If a hundred thousand left together, this makes a hundred short transactions.
    """

    async def sweep() -> int:
        swept = 0
        for _ in range(_PAGES_MAX):
            page = int((await database.call("SELECT livewell.sweep_sessions(%s)", (_PAGE,)))[0][0])
            swept += page
            if page < _PAGE:
                break
        return swept

    return Duty(SWEEP, _EVERY_SECONDS, sweep)
