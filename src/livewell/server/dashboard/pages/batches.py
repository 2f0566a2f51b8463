"""Which batches are there? The newest first, each with how far it is."""

from __future__ import annotations

from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.pages.queues import admin
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded

_TONES = {"running": "fresh", "ended": "fresh", "failed": "bad"}
_WORDS = {"failed": "not all succeeded, and what follows waits"}


async def panels(visit: Visit) -> list[Panel]:
    """One list, by number."""

    async def load() -> Loaded:
        found = await admin(visit).batches(before=visit.after or None, limit=PAGE_ROWS)
        more = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(batches=found, tones=_TONES, words=_WORDS, next=more, is_empty=not found)

    empty = "No more batches." if visit.after else "No batch was made yet, or all of them ended some days ago."
    return [Panel("batches", "The newest first", "batches.html", load, empty)]
