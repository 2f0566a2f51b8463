"""What ran when? Schedules, late ones first, and the runs of one."""

from __future__ import annotations

from urllib.parse import quote

from livewell.schedule.admin import ScheduleAdmin
from livewell.server.answers.json_answer import cursor
from livewell.server.dashboard.visit import PAGE_ROWS, Done, Loaded, Panel, Visit, loaded


async def panels(visit: Visit) -> list[Panel]:
    """Every schedule, and the last runs of all."""

    async def load() -> Loaded:
        found = await _admin(visit).schedules()
        found.sort(key=lambda one: (not one["late"], one["internal"], one["name"]))
        return loaded(schedules=found, is_empty=not found)

    async def runs() -> Loaded:
        found = await _admin(visit).runs(limit=20)
        return loaded(runs=found, next=None, is_empty=not found)

    return [
        Panel("schedules", "Schedules, late ones first", "schedules.html", load, "Nothing is scheduled yet."),
        Panel("runs", "The last runs", "runs.html", runs, "Nothing has run yet."),
    ]


async def one_schedule(visit: Visit) -> list[Panel]:
    """The runs of one schedule, the newest first."""
    name = visit.parts["name"]

    async def runs() -> Loaded:
        found = await _admin(visit).runs(name, before=visit.after, limit=PAGE_ROWS)
        more = cursor(found[-1]["id"]) if len(found) == PAGE_ROWS else None
        return loaded(runs=found, next=more, is_empty=not found)

    return [
        Panel("runs", f"Runs of {name}", "runs.html", runs, "It has not run yet, or its runs are older than 30 days.")
    ]


async def run(visit: Visit) -> Done:
    """Ask for a run now, beside the slots."""
    answer = await _acting(visit).ask(visit.parts["name"])
    waits = " No worker that has it was here for a minute: it waits for one." if answer == "nobody" else ""
    return Done(f"A run of {visit.parts['name']} is asked for.{waits}", _back(visit))


async def pause(visit: Visit) -> Done:
    """Begin no more runs; what runs may end."""
    await _acting(visit).pause(visit.parts["name"])
    return Done(f"{visit.parts['name']} is paused.", _back(visit))


async def resume(visit: Visit) -> Done:
    """Begin runs again."""
    await _acting(visit).pause(visit.parts["name"], paused=False)
    return Done(f"{visit.parts['name']} goes on.", _back(visit))


def _back(visit: Visit) -> str:
    return f"/schedules/{quote(visit.parts['name'], safe='')}"


def _admin(visit: Visit) -> ScheduleAdmin:
    return ScheduleAdmin(visit.database, visit.state.nudger)


def _acting(visit: Visit) -> ScheduleAdmin:
    return ScheduleAdmin(visit.state.pools.operate, visit.state.nudger)
