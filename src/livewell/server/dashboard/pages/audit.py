"""Who did what? Every act by page, HTTP or command line, the newest first."""

from __future__ import annotations

from livewell.operations.mend import Mender
from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded


async def panels(visit: Visit) -> list[Panel]:
    """A page of it."""

    async def load() -> Loaded:
        found = await Mender(visit.database).audit(before=visit.after or None, limit=PAGE_ROWS)
        more = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(acts=found, next=more, is_empty=not found)

    return [Panel("audit", "The newest first", "audit.html", load, "Nobody has done anything that is written down.")]
