"""The plan, made now and then for everybody who looks.

    nothing ──look──▶ making ──▶ plan ──older than PLAN_SECONDS, and somebody looks──▶ making
                         └──failed──▶ the plan before, with why there is no newer one

A plan reads all subscriptions: a second or two with hundreds of thousands. So it is made beside the
pages, which show the last one; the first to look waits for it only WAIT_SECONDS.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from livewell.db import Database
from livewell.errors import LivewellError
from livewell.refresh.plan.report import Plan, make_plan

log = structlog.get_logger("livewell.dashboard")

PLAN_SECONDS = 60.0
WAIT_SECONDS = 0.15


@dataclass(frozen=True, slots=True)
class PlanSample:
    """plan: the last one; None while the first is made. error: why there is no newer one."""

    plan: Plan | None
    error: str | None = None


class PlanSampler:
    """One for each server."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._plan: Plan | None = None
        self._error: str | None = None
        self._begun_at = float("-inf")
        self._making: asyncio.Task[None] | None = None

    async def look(self) -> PlanSample:
        """The last plan; another one is begun if it is old."""
        if self._making is None and self._clock() - self._begun_at >= PLAN_SECONDS:
            self._begun_at = self._clock()
            self._making = asyncio.create_task(self._make(), name="dashboard plan")
        if self._making is not None and self._plan is None:
            await asyncio.wait({self._making}, timeout=WAIT_SECONDS)
        return PlanSample(self._plan, self._error)

    async def close(self) -> None:
        """End the plan that is being made."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait({self._making})

    async def _make(self) -> None:
        try:
            self._plan, self._error = await make_plan(self._database), None
        except LivewellError as error:
            self._error = str(error)
            log.warning("a plan could not be made", error=str(error))
        except Exception:
            self._error = "making the plan has a fault; the server's log says which"
            log.exception("making a plan has a fault")
        finally:
            self._making = None
