"""How did this run end? Its slot, when it began and ended, by which worker, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from livewell.server.dashboard.pages.schedules import TONES, admin
from livewell.server.dashboard.visit import Loaded, Panel, Visit, loaded
from livewell.server.state_sampler import parts
from livewell.words import span

Step = tuple[str, datetime | None, str, str]  # word, when, tone, note


async def panels(visit: Visit) -> list[Panel]:
    """Its life, and its error."""
    number = visit.number("id")
    run = await admin(visit).run(number)

    async def life() -> Loaded:
        # A holder is the name of a worker; one that lives has a page.
        sample = await visit.state.looks.sampler.look()
        workers = parts(sample.document, "queue", "workers")
        worker_id = next((one["id"] for one in workers if one["name"] == run["holder"]), None)
        steps = list(timeline(run))
        return loaded(run=run, steps=steps, tone=TONES[run["state"]], took=_took(run), worker_id=worker_id)

    async def error() -> Loaded:
        return loaded(error=run["error"], is_empty=not run["error"])

    return [
        Panel("life", f"Run {number} of {run['schedule']}", "run_life.html", life),
        Panel("error", "Error", "run_error.html", error, "None: nothing has gone wrong in it."),
    ]


def timeline(run: Mapping[str, Any]) -> Iterator[Step]:
    """What happened to a run, in order."""
    yield ("Asked for" if run["asked"] else "Slot"), run["due_at"], "none", ""
    if run["state"] == "skipped":
        yield "Skipped", None, "warn", "it never began"
        return
    waited = (run["started_at"] - run["due_at"]).total_seconds()
    yield "Started", run["started_at"], "none", f"{span(waited)} later" if waited >= 1 else ""
    if run["finished_at"] is None:
        yield "Running", None, "fresh", "it has not ended"
    else:
        yield run["state"].capitalize(), run["finished_at"], TONES[run["state"]], f"after {span(_took(run))}"


def _took(run: Mapping[str, Any]) -> float | None:
    if run["started_at"] is None or run["finished_at"] is None:
        return None
    seconds: float = (run["finished_at"] - run["started_at"]).total_seconds()
    return seconds
