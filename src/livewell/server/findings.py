"""The findings of the doctor, made once for everybody who looks.

    nothing ──look──▶ examining ──▶ findings ──older than FRESH_SECONDS, and somebody looks──▶ examining
                                       └── meanwhile the findings before, with their time

An examination takes up to three seconds and has connections of its own (examine()): it takes
nothing from those who look or are served, and is not bound by their second for a statement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from livewell.finding import Finding
from livewell.operations.doctor import examine
from livewell.settings import Settings

log = structlog.get_logger("livewell.dashboard")

FRESH_SECONDS = 30.0
EXAMINE_SECONDS_MAX = 15.0
CHECK_SECONDS = 5.0  # nobody waits for it, so it may take longer than `livewell doctor`
_AT_ONCE_SECONDS = 5.0  # that the first look waits
_EXAMINE = partial(examine, check_seconds=CHECK_SECONDS)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found, the most severe first, and when. error: why nothing newer is known."""

    findings: Sequence[Finding]
    at: datetime
    error: str | None = None


class Findings:
    """One for each server."""

    def __init__(
        self,
        address: str,
        settings: Settings,
        *,
        examine: Callable[[str, Settings], Awaitable[list[Finding]]] = _EXAMINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = address
        self._settings = settings
        self._examine = examine
        self._clock = clock
        self._diagnosis: Diagnosis | None = None
        self._began_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def peek(self) -> Diagnosis | None:
        """The newest diagnosis at once, or None; a new examination begins if this one is too old."""
        if self._task is None and self._clock() - self._began_at >= FRESH_SECONDS:
            self._began_at = self._clock()
            self._task = asyncio.create_task(self._run(), name="doctor of the dashboard")
        return self._diagnosis

    async def look(self) -> Diagnosis | None:
        """The newest diagnosis; the first look waits for it, though not for ever."""
        found = self.peek()
        if found is None and self._task is not None:
            await asyncio.wait([self._task], timeout=_AT_ONCE_SECONDS)
        return self._diagnosis

    async def close(self) -> None:
        """End an examination that is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(EXAMINE_SECONDS_MAX):
                found = await self._examine(self._address, self._settings)
        except Exception as error:
            log.exception("the doctor has a fault")
            why = f"the examination failed: {type(error).__name__}; the server's log says more"
            at = self._diagnosis.at if self._diagnosis is not None else datetime.now(UTC)
            self._diagnosis = Diagnosis(self._diagnosis.findings if self._diagnosis is not None else (), at, why)
        else:
            self._diagnosis = Diagnosis(sorted(found, key=lambda one: one.level), datetime.now(UTC))
        finally:
            self._task = None
