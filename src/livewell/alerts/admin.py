"""What people do with alerts: look, and enable a channel again."""

from __future__ import annotations

from typing import Any, Self

from livewell.db import Database, acts
from livewell.db.open_app import OpenApp
from livewell.errors import AlertNotFound, InvalidOption

Record = dict[str, Any]
STATES = ("armed", "fired", "cooling", "all")

_ENABLED = """
SELECT jsonb_build_object('disabled', c.disabled_at IS NOT NULL, 'quiet_until', c.quiet_until)
FROM livewell.alert_channel c WHERE c.name = %s FOR NO KEY UPDATE
"""
_ENABLE = acts.audited("livewell.enable_channel(%s)", before=_ENABLED)


class AlertAdmin:
    """The operator's view of alerts, used by the command line and by the server."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database)

    async def alerts(self, *, state: str | None = None, after: int = 0, limit: int = 50) -> list[Record]:
        """A page of alerts by number; without a state, those that are wrong now."""
        if state is not None and state not in STATES:
            raise InvalidOption(f"state {state!r}: allowed are {', '.join(STATES)}")
        return await self._database.call_dicts("SELECT * FROM livewell.list_alerts(%s, %s, %s)", (state, after, limit))

    async def alert(self, number: int) -> Record:
        """One alert, with its firings and every attempt to tell somebody."""
        rows = await self._database.call_dicts(
            "SELECT * FROM livewell.list_alerts('all', %s, 1) WHERE id = %s", (number - 1, number)
        )
        if not rows:
            raise AlertNotFound(f"alert {number}: there is none with that number; list them with: livewell alerts list")
        told = await self._database.call_dicts("SELECT * FROM livewell.list_attempts(%s)", (number,))
        return {**rows[0], "firings_shown": _by_firing(told)}

    async def channels(self) -> list[Record]:
        """Every channel that was ever declared."""
        return await self._database.call_dicts(
            "SELECT name, kind, source, level, repeats, since, quiet_until, disabled_at FROM "
            "livewell.alert_channel ORDER BY name LIMIT 1000"
        )

    async def rules(self) -> list[Record]:
        """Every rule that was ever evaluated, and when it last gave an answer."""
        return await self._database.call_dicts(
            "SELECT name, level, evaluated_at, failed_at, error FROM livewell.alert_rule ORDER BY name LIMIT 1000"
        )

    async def enable(self, channel: str) -> None:
        """Let a channel send again whose receiver was gone, or wanted silence."""
        act = acts.line("alerts.enable", channel, after={"disabled": False, "quiet_until": None})
        if not (await self._database.call(_ENABLE, (channel, channel, *act)))[0][0]:
            names = [row["name"] for row in await self.channels()]
            raise AlertNotFound(f"channel {channel!r} is not known; there are: {', '.join(names) or 'none'}")


_FIRING = ("firing_id", "fired_at", "ended_at", "summary")
_TOLD = ("channel", "state", "attempts", "next_at")
_ATTEMPT = ("attempt_at", "outcome", "status", "detail")


def _by_firing(rows: list[Record]) -> list[Record]:
    """Firing ▸ channel ▸ attempt, out of one row per attempt."""
    firings: dict[int, Record] = {}
    for row in rows:
        firing = firings.setdefault(row["firing_id"], {**{name: row[name] for name in _FIRING}, "told": {}})
        if row["channel"] is None:
            continue
        told = firing["told"].setdefault(row["channel"], {**{name: row[name] for name in _TOLD}, "tried": []})
        if row["attempt_at"] is not None:
            told["tried"].append({name: row[name] for name in _ATTEMPT})
    return [{**firing, "told": list(firing["told"].values())} for firing in firings.values()]
