"""What was tolerated, and how often? Failures that were counted instead of reported, by place and kind."""

from __future__ import annotations

from urllib.parse import urlencode

from livewell.operations.warnings import Warnings
from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded

HOURS = {"1": "this hour", "24": "24 hours", "168": "7 days"}


async def panels(visit: Visit) -> list[Panel]:
    """A page of them, by place and kind."""
    hours = visit.asked("hours", among=tuple(HOURS)) or "24"
    data_type = visit.asked("type")

    async def tolerated() -> Loaded:
        found = await Warnings(visit.database).page(
            hours=int(hours), data_type=data_type, after=visit.text_after, limit=PAGE_ROWS
        )
        return loaded(
            warnings=found,
            hours=hours,
            choices=HOURS,
            type=data_type,
            type_query=f"&{urlencode({'type': data_type})}" if data_type else "",
            next=cursor(found[-1]["cursor"]) if len(found) == PAGE_ROWS else None,
        )

    return [Panel("warnings", "Tolerated failures", "warnings.html", tolerated)]
