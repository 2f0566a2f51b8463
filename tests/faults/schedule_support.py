"""Workers with one schedule that catches up with all its slots, and a judge.

The judge reads what the handlers wrote down: each slot once, none missing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from tests.faults.fleet import Event, Fleet, Worker
from tests.faults.scenario import Findings
from tests.integration.schedule.scheduled_app import EVERY, HOLD

COMMAND = ("-m", "livewell.cli", "worker", "tests.integration.schedule.scheduled_app:app")
EVERY_SECONDS = 0.2


class Schedulers:
    """Of one fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._hold = Path(f"{fleet.log.path}.hold")

    async def start(self, n: int, *, env: dict[str, str] | None = None) -> list[Worker]:
        """Worker processes with the schedule."""
        given = {EVERY: f"{EVERY_SECONDS:g}s", HOLD: str(self._hold), **(env or {})}
        return await self.fleet.workers(n, env=given, command=COMMAND)

    def starts(self) -> list[Event]:
        """Every handler that began."""
        return [line for line in self.fleet.events() if line.event == "start"]

    async def until(self, n: int, seconds: float = 60.0) -> bool:
        """Wait for so many starts in all."""
        give_up = time.monotonic() + seconds
        while len(self.starts()) < n:
            if time.monotonic() > give_up:
                return False
            await asyncio.sleep(0.02)
        return True

    async def catch(self, crew: list[Worker], seconds: float = 30.0) -> Worker | None:
        """Hold the next run; answers the worker that is in it."""
        self._hold.touch()
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            ended = {(line.key, line.pid) for line in self.fleet.events() if line.event == "end"}
            last = self.starts()[-1:]
            for line in last:
                if (line.key, line.pid) not in ended and time.monotonic() - line.at > 0.05:
                    return next(worker for worker in crew if worker.pid == line.pid)
            await asyncio.sleep(0.01)
        return None

    def let_go(self) -> None:
        """Runs end again."""
        self._hold.unlink(missing_ok=True)

    def judge(self, findings: Findings, *, missing_max: int = 0) -> dict[str, int]:
        """Each slot once, and none left out between the first and the last.

        Nothing began before it was due.
        """
        times = Counter(line.key for line in self.starts())
        steps = [round((b - a) / (EVERY_SECONDS * 1_000_000)) for a, b in pairwise(sorted(times))]
        twice, missing = sum(n - 1 for n in times.values()), sum(step - 1 for step in steps)
        early = int(self.fleet.value("SELECT count(*) FROM livewell.run WHERE started_at < due_at"))
        findings.check(twice == 0, f"{twice} slots ran twice")
        findings.check(missing <= missing_max, f"{missing} of {len(times)} slots never ran")
        findings.check(early == 0, f"{early} slots ran before they were due")
        return {"slots": len(times), "twice": twice, "missing": missing, "early": early}
