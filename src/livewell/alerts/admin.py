"""What people do with alerts: look, silence, test a channel, and enable one again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from livewell.db import Database, acts
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.errors import AlertNotFound, InvalidOption
from livewell.schedule.nudges import SCHEDULE
from livewell.words import span

Record = dict[str, Any]
Tested = Literal["asked", "nobody", "waiting"]
STATES = ("armed", "fired", "cooling", "all")
SILENCE_SECONDS_MAX = 7 * 86400.0

_SILENCE = acts.audited("livewell.silence_alerts(%s, %s, %s, %s)")
_UNSILENCE = acts.audited("livewell.unsilence_alerts(%s, %s)")
_TEST = acts.audited("livewell.test_channel(%s)")
_ENABLED = """
SELECT jsonb_build_object('disabled', c.disabled_at IS NOT NULL, 'quiet_until', c.quiet_until)
FROM livewell.alert_channel c WHERE c.name = %s FOR NO KEY UPDATE
"""
_ENABLE = acts.audited("livewell.enable_channel(%s)", before=_ENABLED)


class AlertAdmin:
    """The operator's view of alerts, used by the command line and by the server."""

    def __init__(self, database: Database, nudger: Nudger | None = None) -> None:
        self._database = database
        self._nudger = nudger  # without it, a test waits for the next turn of a worker

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database, app.nudger)

    async def alerts(self, *, state: str | None = None, after: int = 0, limit: int = 50) -> list[Record]:
        """A page of alerts by number; without a state, those that are wrong now."""
        if state is not None and state not in STATES:
            raise InvalidOption(f"state {state!r}: allowed are {', '.join(STATES)}")
        return await self._database.call_dicts("SELECT * FROM livewell.list_alerts(%s, %s, %s)", (state, after, limit))

    async def urgent(self, *, after: Record | None = None, limit: int = 50) -> list[Record]:
        """A page of what is wrong now, the worst first: fired before cooling, then by level and number.

        after: the last one of the page before, of which is_cooling, level and id are looked at.
        """
        place = (after["is_cooling"], after["level"], after["id"]) if after else (None, None, None)
        query = "SELECT * FROM livewell.list_urgent_alerts(%s, %s, %s, %s)"
        return await self._database.call_dicts(query, (*place, limit))

    async def alert(self, number: int) -> Record:
        """One alert, with its firings and every attempt to tell somebody."""
        rows = await self._database.call_dicts(
            "SELECT * FROM livewell.list_alerts('all', %s, 1) WHERE id = %s", (number - 1, number)
        )
        if not rows:
            raise AlertNotFound(f"alert {number}: there is none with that number; list them with: livewell alerts list")
        told = await self._database.call_dicts("SELECT * FROM livewell.list_attempts(%s)", (number,))
        return {**rows[0], "firings_shown": _by_firing(told)}

    async def past(self, *, before: int | None = None, limit: int = 50) -> list[Record]:
        """A page of firings that are over, the newest first, with who was told."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_firings(%s, %s)", (before or None, limit))

    async def channels(self) -> list[Record]:
        """Every channel that was ever declared, and how its last test ended."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_channels()")

    async def silences(self) -> list[Record]:
        """Silences that are in force, those that end first first."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_silences()")

    async def rules(self) -> list[Record]:
        """Every rule that was ever evaluated, and when it last gave an answer."""
        return await self._database.call_dicts(
            "SELECT name, level, evaluated_at, failed_at, error FROM livewell.alert_rule ORDER BY name LIMIT 1000"
        )

    async def silence(self, rule: str, *, seconds: float, subject: str = "") -> datetime:
        """Tell nobody of a rule, or of one of its subjects, for so long; answers until when.

        What fires meanwhile and still does at the end is told then.
        """
        if not 1 <= seconds <= SILENCE_SECONDS_MAX:
            raise InvalidOption(f"a silence of {span(seconds)}: from a second to 7 days are allowed")
        if "\x00" in rule + subject:
            raise AlertNotFound("alert rule: there is none of that name")
        act = acts.line("alerts.silence", _silenced(rule, subject), seconds=seconds)
        until = (await self._database.call(_SILENCE, (rule, subject, seconds, acts.actor(), *act)))[0][0]
        if until is None:
            names = [row["name"] for row in await self.rules()]
            raise AlertNotFound(f"alert rule {rule!r} is not known; there are: {', '.join(names) or 'none yet'}")
        return datetime.fromisoformat(until) if isinstance(until, str) else until

    async def unsilence(self, rule: str, *, subject: str = "") -> None:
        """End a silence now."""
        if "\x00" in rule + subject:
            raise AlertNotFound("alert rule: there is none of that name")
        act = acts.line("alerts.unsilence", _silenced(rule, subject))
        if not (await self._database.call(_UNSILENCE, (rule, subject, *act)))[0][0]:
            raise AlertNotFound(
                f"{_silenced(rule, subject)} is not silenced; see what is with: livewell alerts silences"
            )

    async def test(self, channel: str) -> Tested:
        """Ask for a test message through a channel; its outcome is in channels().

        nobody: it is asked for, and waits for a worker. waiting: the last test is not over yet.
        """
        answer = (await self._database.call(_TEST, (channel, *acts.line("alerts.test", channel))))[0][0]
        if answer == "unknown":
            raise await self._unknown(channel)
        if answer == "disabled":
            raise InvalidOption(
                f"channel {channel} is disabled: its receiver was gone. Enable it first: livewell alerts enable "
                f"{channel}"
            )
        if self._nudger is not None:
            self._nudger.nudge(SCHEDULE)
        return "nobody" if answer == "nobody" else "waiting" if answer == "waiting" else "asked"

    async def enable(self, channel: str) -> None:
        """Let a channel send again whose receiver was gone, or wanted silence."""
        act = acts.line("alerts.enable", channel, after={"disabled": False, "quiet_until": None})
        if not (await self._database.call(_ENABLE, (channel, channel, *act)))[0][0]:
            raise await self._unknown(channel)

    async def _unknown(self, channel: str) -> AlertNotFound:
        names = [row["name"] for row in await self.channels()]
        return AlertNotFound(f"channel {channel!r} is not known; there are: {', '.join(names) or 'none'}")


def _silenced(rule: str, subject: str) -> str:
    return f"{rule}: {subject}" if subject else rule


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
