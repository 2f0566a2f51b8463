"""The state of the system, read once for everybody who looks.

    nothing ──look──▶ reading ──▶ sample ──fresh enough──▶ the same sample
                         └──failed──▶ the sample before, with why nothing newer could be read

However many tabs are open, livewell.system_state() is asked once in SAMPLE_SECONDS. While the server
runs, a point of each sample is kept for an hour: the lines of the overview.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from livewell.db import Database
from livewell.errors import DatabaseUnavailable, LivewellError
from livewell.operations.state import read_state
from livewell.telemetry.system_state import Document

log = structlog.get_logger("livewell.dashboard")

SAMPLE_SECONDS = 2.0
POINT_SECONDS = 10.0
POINTS_MAX = 360  # an hour of them


@dataclass(frozen=True, slots=True)
class Sample:
    """document: the system state. error: why nothing newer could be read since."""

    document: Document
    at: datetime
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One moment of the last hour. fresh: share of keys with a fresh value; None without keys."""

    at: datetime
    fresh: float | None
    waiting: int
    done_per_minute: float


class StateSampler:
    """One for each server."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = asyncio.Lock()
        self._sample: Sample | None = None
        self._tried_at = float("-inf")
        self._error: str | None = None
        self._keeping: asyncio.Task[None] | None = None
        self.points: deque[Point] = deque(maxlen=POINTS_MAX)

    async def look(self) -> Sample:
        """The newest sample; raises if there never was one."""
        async with self._lock:
            if self._clock() - self._tried_at >= SAMPLE_SECONDS:
                await self._read()
            if self._sample is None:
                raise DatabaseUnavailable(self._error or "the database does not answer")
            return self._sample if self._error is None else Sample(self._sample.document, self._sample.at, self._error)

    def start(self) -> None:
        """Keep points of the last hour."""
        self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Stop."""
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping

    async def _read(self) -> None:
        try:
            document = await read_state(self._database)
        except LivewellError as error:
            self._error = str(error)
            log.warning("the state of the system could not be read", error=str(error))
        else:
            self._sample, self._error = Sample(document, datetime.fromisoformat(str(document["at"]))), None
        self._tried_at = self._clock()

    async def _keep(self) -> None:
        while True:
            with contextlib.suppress(LivewellError):  # logged where it was read
                sample = await self.look()
                if sample.error is None:
                    self.points.append(point_of(sample))
            await asyncio.sleep(POINT_SECONDS)


def point_of(sample: Sample) -> Point:
    """What of a sample is kept for an hour."""
    keys = [verdicts for one in parts(sample.document, "refresh", "types") for verdicts in [one["keys"]]]
    total = sum(sum(verdicts.values()) for verdicts in keys)
    fresh = sum(verdicts.get("fresh", 0) for verdicts in keys)
    queues = parts(sample.document, "queue", "queues")
    return Point(
        sample.at,
        fresh / total if total else None,
        sum(one["ready"] + one["delayed"] + one["held"] for one in queues),
        sum(one["done_per_minute"] for one in queues),
    )


def parts(document: Document, part: str, items: str) -> list[dict[str, Any]]:
    """A list of one part of the state; empty if the part could not be read."""
    found = document.get(part)
    return list(found.get(items, [])) if isinstance(found, dict) else []
