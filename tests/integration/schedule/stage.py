"""What the scheduler's tests share.

An open database, schedulers that run until the test ends, and waiting for what the database shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from livewell import Livewell, Settings
from livewell.db import Database
from livewell.db.nudge import Nudger
from livewell.schedule.admin import ScheduleAdmin
from livewell.schedule.scheduler import Scheduler
from tests.support.schedule_sql import ScheduleSession

WAIT_SECONDS = 20.0


class Stage:
    """One database, any number of schedulers."""

    def __init__(self, settings: Settings, rows: ScheduleSession) -> None:
        assert settings.database_url is not None
        self.rows = rows
        self.database = Database(settings.database_url.get_secret_value(), settings)
        self._running: list[tuple[Scheduler, asyncio.Task[None]]] = []

    async def open(self) -> None:
        await self.database.open()
        self.nudger = Nudger(self.database)
        self.admin = ScheduleAdmin(self.database, self.nudger)

    async def close(self) -> None:
        for scheduler, _ in list(self._running):
            await self.stop(scheduler)
        await self.nudger.close()
        await self.database.close()

    def start(self, app: Livewell, *, holder: str = "test", **options: Any) -> Scheduler:
        """A scheduler with the app's schedules."""
        scheduler = Scheduler(
            self.database, self.nudger, list(app.schedules.values()), holder=holder, **{"poll_seconds": 0.1, **options}
        )
        self._running.append((scheduler, asyncio.create_task(scheduler.run())))
        return scheduler

    async def stop(self, scheduler: Scheduler, *, grace: float = 5.0) -> None:
        """As a worker stops it."""
        [(_, task)] = [one for one in self._running if one[0] is scheduler]
        await scheduler.settle(grace, asyncio.Event())
        task.cancel()
        await asyncio.wait([task])
        self._running = [one for one in self._running if one[0] is not scheduler]

    def states(self) -> list[tuple[Any, ...]]:
        """The history: state, and the reason or the error."""
        return self.rows.runs("state::text", "coalesce(reason, error)")


async def until(true: Callable[[], object]) -> None:
    """Wait for something another task does; bounded."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not true():  # noqa: ASYNC110 - what it waits for is in the database
            await asyncio.sleep(0.005)
