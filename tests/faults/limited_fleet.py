"""A fleet that calls a fake upstream under limits.

async with open_limited_fleet(scale, {"rate": {"rate": "100/3s"}}) as limited:
    await limited.workers(20)
    await limited.enqueue("rate", 500)
    calls = limited.upstream.log.read()             the oracle: what the upstream saw, and when
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from pydantic import SecretStr

from livewell import Livewell, Settings
from livewell.testing import FakeUpstream
from tests.faults.fleet import Fleet, Worker, open_fleet
from tests.faults.limited_app import LIMITERS, UPSTREAM, make_app
from tests.faults.scenario import Scale

COMMAND = ("-m", "livewell.cli", "worker", "tests.faults.limited_app:app")


@dataclass(slots=True)
class LimitedFleet:
    """The fleet, the upstream it calls, and the app that enqueues."""

    fleet: Fleet
    upstream: FakeUpstream
    app: Livewell
    env: dict[str, str]

    def start(self, **settings: object) -> Worker:
        """Start a worker process and return at once."""
        return self.fleet.start(env=self.env, command=COMMAND, **settings)

    async def workers(self, n: int, **settings: object) -> list[Worker]:
        """Start n worker processes and wait until each has registered."""
        return await self.fleet.workers(n, env=self.env, command=COMMAND, **settings)

    def lags(self) -> dict[int, float]:
        """Seconds from the check of the permit to the upstream's stamp, by fence.

        What no limiter can know of, and d does not cover.
        """
        checked = {line.key: line.at for line in self.fleet.events() if line.event == "sent"}
        fences = ((call.at_ns, call.jobs[0][1]) for call in self.upstream.log.read())
        return {fence: at_ns / 1e9 - checked[fence] for at_ns, fence in fences if fence in checked}

    async def enqueue(self, queue: str, n: int = 1, **arguments: object) -> list[int]:
        """Enqueue n calls in the lane of people; answers their keys."""
        task, fleet = f"call_{queue}", self.fleet
        keys = list(range(len(fleet.jobs) + 1, len(fleet.jobs) + 1 + n))
        answers = await self.app._handles[task].enqueue_many([{"key": key, **arguments} for key in keys])
        fleet.jobs.update(zip(keys, (answer.id for answer in answers), strict=True))
        fleet.tasks.update(dict.fromkeys(keys, task))
        return keys


@asynccontextmanager
async def open_limited_fleet(
    scale: Scale, limiters: Mapping[str, Mapping[str, Any]], **settings: object
) -> AsyncIterator[LimitedFleet]:
    """Open a fleet on a fresh database, with these limiters and an upstream of its own.

    limiters: queue → arguments of app.limiter.
    """
    async with open_fleet(scale, **settings) as fleet, FakeUpstream(scale.folder, seed=scale.seed) as upstream:
        with suppress(PermissionError):  # only root may; a ruler that has to wait for a core measures too late
            os.setpriority(os.PRIO_PROCESS, upstream.process.pid, -15)
        app = make_app(limiters)
        given = {"database_url": SecretStr(fleet.dsn), **fleet.settings}
        await app.open(settings=Settings.model_validate(given))
        try:
            yield LimitedFleet(
                fleet, upstream, app, {UPSTREAM: str(upstream.port), LIMITERS: json.dumps(dict(limiters))}
            )
        finally:
            with suppress(psycopg.Error):
                await app.close()
