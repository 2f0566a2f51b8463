"""What people do with schedules: look, ask for a run, pause, remove; and read the history.

Used by the command line, the server and code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from livewell.db import Database, acts
from livewell.db.nudge import Nudger
from livewell.db.open_app import OpenApp
from livewell.errors import InvalidOption, UnknownSchedule
from livewell.schedule.nudges import SCHEDULE

Record = dict[str, Any]
Outcome = Literal["failed", "skipped", "succeeded", "running"]

# What people ask for, and the states of runs that are that.
OUTCOMES: Mapping[str, tuple[str, ...]] = {
    "failed": ("failed", "crashed"),
    "skipped": ("skipped",),
    "succeeded": ("succeeded",),
    "running": ("running",),
}

_PAUSED = """
SELECT jsonb_build_object('paused', s.paused_at IS NOT NULL) FROM livewell.schedule s WHERE s.name = %s FOR NO KEY UPDATE
"""
_DECLARED = """
SELECT jsonb_strip_nulls(jsonb_build_object('kind', s.kind, 'cron', s.cron, 'zone', s.zone, 'every', s.every, 'paused', s.paused_at IS NOT NULL))
FROM livewell.schedule s WHERE s.name = %s
"""
_ASK = acts.audited("livewell.ask_run(%s)")
_PAUSE = acts.audited("livewell.pause_schedule(%s, %s)", before=_PAUSED)
_REMOVE = acts.audited("livewell.remove_schedule(%s)", before=_DECLARED)


class ScheduleAdmin:
    """The operator's hands."""

    def __init__(self, database: Database, nudger: Nudger) -> None:
        self._database = database
        self._nudger = nudger

    @classmethod
    def of(cls, app: OpenApp) -> Self:
        """For an open app."""
        return cls(app.database, app.nudger)

    async def schedules(self) -> list[Record]:
        """Every schedule and every loop, by name, with its next slot and its latest run."""
        return await self._database.call_dicts("SELECT * FROM livewell.list_schedules()")

    async def runs(self, schedule: str | None = None, *, before: int | None = None, limit: int = 50) -> list[Record]:
        """A page of runs, the newest first."""
        return await self._database.call_dicts(
            "SELECT * FROM livewell.list_runs(%s, %s, %s)", (schedule, before or None, limit)
        )

    async def runs_that(
        self, outcome: str, schedule: str | None = None, *, before: int | None = None, limit: int = 50
    ) -> tuple[list[Record], int | None]:
        """A page of runs that ended so, the newest first, and the run before which the next page begins.

        None: there are no more. A page may be short, and even empty, while there are more: of all
        runs 10,000 are looked at for one page.
        """
        if outcome not in OUTCOMES:
            raise InvalidOption(f"outcome {outcome!r}: allowed are {', '.join(OUTCOMES)}")
        rows = await self._database.call_dicts(
            "SELECT * FROM livewell.find_runs(%s, %s, %s, %s)",
            (schedule, list(OUTCOMES[outcome]), before or None, limit),
        )
        looked_to = rows[0]["looked_to"] if rows else None
        found = [{name: value for name, value in row.items() if name != "looked_to"} for row in rows if row["id"]]
        return found, found[-1]["id"] if len(found) >= limit else looked_to

    async def run(self, run_id: int) -> Record:
        """What became of one slot."""
        rows = await self._database.call_dicts("SELECT * FROM livewell.show_run(%s)", (run_id,))
        if not rows:
            raise UnknownSchedule(f"there is no run {run_id} (runs are kept for some days)")
        return rows[0]

    async def recent(self, schedules: Sequence[str], *, runs: int = 20) -> dict[str, list[tuple[str, float | None]]]:
        """The latest runs of these schedules, the oldest first: how each ended, and in how many seconds."""
        rows = await self._database.call(
            "SELECT schedule, states, seconds FROM livewell.recent_runs(%s, %s)", (list(schedules), runs)
        )
        return {name: list(zip(states, seconds, strict=True)) for name, states, seconds in rows}

    async def ask(self, name: str) -> Literal["asked", "nobody"]:
        """Ask for a run now; nobody: it waits for a process that has the handler."""
        answer = (await self._database.call(_ASK, (name, *acts.line("schedules.run", name))))[0][0]
        if answer == "unknown":
            raise await self._unknown(name)
        self._nudger.nudge(SCHEDULE)
        return "nobody" if answer == "nobody" else "asked"

    async def pause(self, name: str, *, paused: bool = True) -> bool:
        """Begin no more runs, or begin them again; False if it was so already."""
        act = acts.line("schedules.pause" if paused else "schedules.resume", name, after={"paused": paused})
        [(is_known, _, was)] = await self._database.call(_PAUSE, (name, name, paused, *act))
        if not is_known:
            raise await self._unknown(name)
        self._nudger.nudge(SCHEDULE)
        return bool(was["paused"] != paused)

    async def remove(self, name: str) -> None:
        """Forget a schedule that no process has any more."""
        answer = (await self._database.call(_REMOVE, (name, name, *acts.line("schedules.remove", name))))[0][0]
        if answer == "unknown":
            raise await self._unknown(name)
        if answer == "in use":
            raise InvalidOption(
                f"schedule {name!r}: a process that has its handler was here within the last minute, and would "
                "declare it again. "
                f"Take it out of the code first, or stop it with: livewell schedules pause {name}"
            )

    async def check(self, name: str) -> None:
        """Raise UnknownSchedule unless there is a schedule, or a loop, of this name."""
        if name not in {row["name"] for row in await self.schedules()}:
            raise await self._unknown(name)

    async def _unknown(self, name: str) -> UnknownSchedule:
        names = [row["name"] for row in await self.schedules() if row["kind"] != "loop"]
        return UnknownSchedule(f"schedule {name!r} is not there; there are: {', '.join(names) or 'none'}")
