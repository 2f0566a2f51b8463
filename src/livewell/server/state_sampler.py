"""The state of the system, read once for everybody who looks.

    nothing ──look──▶ reading ──▶ sample ──fresh enough──▶ the same sample
                         └──failed──▶ the sample before, with why nothing newer could be read

However many tabs are open, livewell.system_state() is asked once in SAMPLE_SECONDS.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog

from livewell.db import Database
from livewell.errors import DatabaseUnavailable, LivewellError
from livewell.operations.state import read_state
from livewell.telemetry.system_state import Document

log = structlog.get_logger("livewell.dashboard")

SAMPLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """document: the system state. error: why nothing newer could be read since."""

    document: Document
    at: datetime
    error: str | None = None


class StateSampler:
    """One for each server."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = asyncio.Lock()
        self._sample: Sample | None = None
        self._error: str | None = None
        self._tried_at = float("-inf")

    async def look(self) -> Sample:
        """The newest sample; raises if there never was one."""
        async with self._lock:
            if self._clock() - self._tried_at >= SAMPLE_SECONDS:
                await self._read()
            if self._sample is None:
                raise DatabaseUnavailable(self._error or "the database does not answer")
            return self._sample if self._error is None else replace(self._sample, error=self._error)

    async def _read(self) -> None:
        try:
            document = await read_state(self._database)
            self._sample, self._error = Sample(document, datetime.fromisoformat(str(document["at"]))), None
        except LivewellError as error:
            self._error = str(error)
            log.warning("the state of the system could not be read", error=str(error))
        except Exception:
            self._error = "reading the state has a fault; the server's log says which"
            log.exception("reading the state of the system has a fault")
        self._tried_at = self._clock()


def parts(document: Document, part: str, items: str) -> list[dict[str, Any]]:
    """A list of one part of the state; empty if the part could not be read."""
    found = document.get(part)
    return list(found.get(items, [])) if isinstance(found, dict) else []
