"""Beacons for programs: `await app.beacons.see("backup", every_seconds=3600)`."""

from __future__ import annotations

from typing import Any

from livewell.db.open_app import OpenApp


class Beacons:
    """Of one open app: `app.beacons`, or Beacons(app) where types are checked."""

    def __init__(self, app: OpenApp) -> None:
        self._database = app.database

    async def see(self, name: str, every_seconds: float) -> None:
        """Record that a program is alive; it will report again within every_seconds."""
        await self._database.call("SELECT livewell.see_beacon(%s, %s)", (name, every_seconds))

    async def all(self) -> list[dict[str, Any]]:
        """Every beacon by name, with how long it has been silent."""
        [(state,)] = await self._database.call("SELECT livewell.state_beacons()")
        found: list[dict[str, Any]] = state["beacons"]
        return found
