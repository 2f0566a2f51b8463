"""What is stale, and why? All types, the least fresh first."""

from __future__ import annotations

from livewell.server.dashboard.pages.overview import of_sample, types_of
from livewell.server.dashboard.visit import Loaded, Panel, Visit

TYPES_MAX = 100


async def panels(visit: Visit) -> list[Panel]:
    """One table."""

    async def load() -> Loaded:
        sample = await visit.state.looks.sampler.look()
        found = types_of(sample.document)
        shown = found[:TYPES_MAX]
        return of_sample(
            sample,
            "refresh",
            types=shown,
            others=len(found) - len(shown),
            counted=sample.document.get("refresh", {}).get("how") == "exact",
            is_empty=not found,
        )

    empty = "No type is applied yet: livewell types apply FILE"
    return [Panel("types", "Types, the least fresh first", "types.html", load, empty)]
