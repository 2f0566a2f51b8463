"""Beacons in the dashboard: a page, a panel on the first page, and a form."""

from __future__ import annotations

from livewell.db.acts import audited, line
from livewell.server.dashboard.visit import Done, Loaded, Panel, Visit, loaded


async def panels(visit: Visit) -> list[Panel]:
    """The page /beacons/all: one panel, which stays current while it is looked at."""

    async def load() -> Loaded:
        [(found,)] = await visit.database.call("SELECT livewell.state_beacons()")
        return loaded(beacons=found["beacons"], is_empty=not found["beacons"])

    empty = "No program has reported yet. One does with: PUT /v1/beacons/NAME"
    return [Panel("beacons", "Programs that report", "beacons/list.html", load, empty)]


async def overview(visit: Visit) -> list[Panel]:
    """What it adds to the first page."""

    async def load() -> Loaded:
        [(found,)] = await visit.database.call("SELECT livewell.state_beacons()")
        silent = [one for one in found["beacons"] if one["late"]]
        return loaded(beacons=silent, is_empty=not silent)

    return [Panel("silent", "Silent programs", "beacons/list.html", load, "All programs report.", wide=False)]


async def forget(visit: Visit) -> Done:
    """What the form does; the frame has checked the scope and the form's token."""
    name = visit.parts["name"]
    call = audited("livewell.forget_beacon(%s)")
    await visit.state.pools.operate.call(call, (name, *line("beacon.forget", name)))
    return Done(f"{name} is forgotten.", "/beacons/all")
