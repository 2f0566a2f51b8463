"""How far is this batch? Its counts, what follows it, and whether more may be added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from livewell.server.dashboard.pages.queues import admin
from livewell.server.dashboard.visit import Loaded, Panel, Visit, loaded

Step = tuple[str, datetime | None, str, str]

_WHEN = {"done": "when all have ended, however they end", "succeeded": "only if all succeed"}
_STATES = {
    "open": ("none", "It is open: jobs may still be added. It ends after it is sealed."),
    "running": ("fresh", "It is sealed, and jobs of it have not ended."),
    "failed": (
        "bad",
        "All have ended, but not all succeeded, as what follows wants. Redrive its dead letters to go on.",
    ),
    "ended": ("fresh", "All have ended."),
}


async def panels(visit: Visit) -> list[Panel]:
    """Counts and words, then its life."""
    number = visit.number("id")
    batch = await admin(visit).batch(number)

    async def counts() -> Loaded:
        tone, words = _STATES[batch["state"]]
        ended = batch["total"] - batch["remaining"]
        share = ended / batch["total"] if batch["total"] else None
        return loaded(batch=batch, tone=tone, words=words, ended=ended, share=share)

    async def life() -> Loaded:
        return loaded(batch=batch, steps=list(timeline(batch)), when=_WHEN)

    return [
        Panel("counts", f"Batch {number}", "batch_counts.html", counts),
        Panel("life", "Its life", "batch_life.html", life),
    ]


def timeline(batch: Mapping[str, Any]) -> Iterator[Step]:
    """What happened to a batch, in order."""
    yield "Created", batch["created_at"], "none", ""
    if batch["sealed_at"] is None:
        yield "Open", None, "none", "more jobs may be added"
        return
    yield "Sealed", batch["sealed_at"], "none", f"nothing is added any more to its {batch['total']:,} jobs"
    if batch["ended_at"] is None:
        yield "Not ended", None, "none", f"{batch['remaining']:,} jobs have not ended"
    else:
        yield "Ended", batch["ended_at"], "fresh", ""
