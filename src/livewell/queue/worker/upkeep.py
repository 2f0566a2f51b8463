"""What a worker does beside running jobs: upkeep of the queue, statistics, progress, warnings.

Each duty is a loop of its own that survives any outage: it fails, is counted, and tries again at
its next turn.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from livewell.db import Database
from livewell.errors import DatabaseError, LivewellError
from livewell.loops import WarningBuffer, every
from livewell.queue.worker.holding import Holding

log = structlog.get_logger("livewell.upkeep")


class Upkeep:
    """The loops, and the counters they flush."""

    def __init__(self, database: Database, holding: Holding, *, on_ready: Callable[[], None]) -> None:
        self._link = database.link()
        self._settings = database.settings
        self._holding = holding
        self._on_ready = on_ready
        self._counts: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._seconds: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        self._warnings = WarningBuffer(self._link.call)
        self.recovered = 0

    def count(self, key: tuple[str, str, str], lengths: Sequence[float]) -> None:
        """So many jobs of this queue and kind ended this way, each after so many seconds."""
        self._counts[key] += len(lengths)
        self._seconds[key] += sum(lengths)

    def warn(self, where: str, what: str, sample: str = "") -> None:
        """Something was tolerated.

        It becomes a counted row with the next flush, also when the database is away now.
        """
        self._warnings.add(where, what, sample)

    async def run(self) -> None:
        """All loops, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for seconds, duty in (
                (self._settings.maintain_seconds, self.maintain),
                (self._settings.stat_seconds, self.flush),
                (self._settings.progress_seconds, self._progress),
            ):
                group.create_task(every(seconds, duty, partial(self._failed, duty.__name__)))

    async def close(self) -> None:
        """Give the connection back."""
        await self._link.close()

    async def maintain(self) -> None:
        """Promote what is due and recover what is lost, if it is our turn."""
        rows = await self._link.call(
            "SELECT * FROM livewell.maintain(%s, %s, %s)",
            (self._holding.worker, self._settings.maintain_seconds, self._settings.deadline_grace_seconds),
        )
        _, promoted, buried, lost, overdue = rows[0]
        if buried or lost or overdue:
            self.recovered += lost + overdue
            log.info("recovered", buried_workers=buried, lost_jobs=lost, overdue_jobs=overdue)
        if lost:
            self.warn("queue", "jobs taken back from dead workers", f"{lost} jobs")
        if overdue:
            self.warn("queue", "jobs taken back past their deadline", f"{overdue} jobs")
        if promoted or lost or overdue:
            self._on_ready()

    async def flush(self) -> None:
        """Add our counts to the minute's statistics, and write the warnings."""
        await self._warnings.flush()
        if not self._counts:
            return
        counts, self._counts = self._counts, defaultdict(int)
        seconds, self._seconds = self._seconds, defaultdict(float)
        keys = sorted(counts)
        try:
            await self._link.call(
                "SELECT livewell.add_stats(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[])",
                (
                    [queue for queue, _, _ in keys],
                    [kind for _, kind, _ in keys],
                    [outcome for _, _, outcome in keys],
                    [counts[key] for key in keys],
                    [round(seconds[key] * 1000) for key in keys],
                ),
            )
        except DatabaseError:
            # Kept for the next flush; if the commit was only unanswered, this minute counts twice.
            # Statistics may; jobs may not.
            for key in keys:
                self._counts[key] += counts[key]
                self._seconds[key] += seconds[key]
            raise

    async def _progress(self) -> None:
        jobs = [held.job for held in self._holding.running.values() if not held.job.reported]
        if not jobs:
            return
        for job in jobs:
            job.reported = True
        await self._link.call(
            "SELECT livewell.report_progress(%s, %s::bigint[], %s::bigint[], %s::smallint[], %s::text[])",
            (
                self._holding.worker,
                [job.id for job in jobs],
                [job.claimed.fence for job in jobs],
                [job.percent for job in jobs],
                [job.note for job in jobs],
            ),
        )

    def _failed(self, duty: str, kind: str, error: LivewellError) -> None:
        self.warn("upkeep", f"{duty} failed: {kind}", str(error))
        log.warning("upkeep failed", duty=duty, error=str(error))
