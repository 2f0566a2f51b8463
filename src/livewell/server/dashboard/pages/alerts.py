"""What went wrong, and who knows? Alerts, channels, what was tolerated, and the doctor's findings."""

from __future__ import annotations

from livewell.alerts.admin import AlertAdmin
from livewell.operations.doctor.examination import diagnose
from livewell.operations.warnings import Warnings
from livewell.server.dashboard.visit import PAGE_ROWS, Loaded, Panel, Visit, loaded


async def panels(visit: Visit) -> list[Panel]:
    """Alerts that fire or have fired, channels, warnings."""

    async def alerts() -> Loaded:
        found = await AlertAdmin(visit.database).alerts(state="all", after=visit.after, limit=PAGE_ROWS)
        return loaded(alerts=found, is_empty=not found)

    async def channels() -> Loaded:
        found = await AlertAdmin(visit.database).channels()
        return loaded(channels=found, is_empty=not found)

    async def tolerated() -> Loaded:
        found = await Warnings(visit.database).page(hours=24, limit=PAGE_ROWS)
        return loaded(warnings=found, is_empty=not found)

    return [
        Panel("alerts", "Alerts", "alerts.html", alerts, "No alert has fired."),
        Panel(
            "channels",
            "Who is told",
            "channels.html",
            channels,
            "Nobody is told: no channel is set. See: livewell docs howto/alerts",
        ),
        Panel("warnings", "Tolerated in the last 24 hours", "warnings.html", tolerated, "Nothing had to be tolerated."),
    ]


async def doctor(visit: Visit) -> list[Panel]:
    """Every known failure: what was seen, what it means, and what mends it."""

    async def load() -> Loaded:
        found = await diagnose(visit.database, visit.state.settings)
        return loaded(findings=found, is_empty=not found)

    return [Panel("findings", "Findings", "doctor.html", load, "All is well: nothing was found.")]
