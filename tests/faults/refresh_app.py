"""The app of worker processes that refresh; run by `livewell worker tests.faults.refresh_app:app`.

What it does is the product's; the environment may make it odd:

    LIVEWELL_TEST_DEADLINE_SECONDS   a shorter deadline of calls, so that a short test need not wait ten seconds for silence
    LIVEWELL_TEST_ATTENTIVE          the registry is looked at before every call, and not every two seconds
    LIVEWELL_TEST_STUBBORN           nothing stops a refresh on the way to its store: no cancellation, and not the news that its worker was buried

Every refresh appends to LIVEWELL_TEST_LOG, with the fence of its first job for a key: `start`, then
`done` or `fenced`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress

from livewell import Livewell, Settings
from livewell.errors import OwnershipLost
from livewell.outbound import Outbound
from livewell.queue.job import Job
from livewell.refresh.job_payload import Wanted
from livewell.refresh.registry.registry import Registry
from livewell.refresh.result import Failure
from livewell.refresh.task import JobEnd, KnownType, RefreshTask
from tests.faults.fleet_app import LOG, note

DEADLINE = "LIVEWELL_TEST_DEADLINE_SECONDS"
STUBBORN = "LIVEWELL_TEST_STUBBORN"
ATTENTIVE = "LIVEWELL_TEST_ATTENTIVE"

app = Livewell()
_refresh = RefreshTask._refresh
look = Registry.look


async def _noted(
    task: RefreshTask, known: KnownType | Failure, taken: Sequence[tuple[Wanted, Job]]
) -> Sequence[JobEnd]:
    fence = taken[0][1].claimed.fence
    note("start", fence)
    ends = await _refresh(task, known, taken)
    note("fenced" if any(isinstance(one, OwnershipLost) for one in ends) else "done", fence)
    return ends


async def _stubborn(
    task: RefreshTask, known: KnownType | Failure, taken: Sequence[tuple[Wanted, Job]]
) -> Sequence[JobEnd]:
    acting = asyncio.create_task(_noted(task, known, taken))
    while not acting.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(acting)
    return acting.result()


async def _look(registry: Registry) -> None:
    registry.forget_time()
    await look(registry)


def _hasty(settings: Settings) -> Outbound:
    return Outbound(
        allowed_hosts=settings.outbound_hosts,
        private_hosts=settings.outbound_private_hosts,
        deadline_seconds=float(os.environ[DEADLINE]),
    )


if LOG in os.environ:  # we are a worker
    setattr(RefreshTask, "_refresh", _stubborn if STUBBORN in os.environ else _noted)  # noqa: B010 - a method, on purpose
    if ATTENTIVE in os.environ:
        setattr(Registry, "look", _look)  # noqa: B010 - the same
    if DEADLINE in os.environ:
        setattr(Outbound, "from_settings", staticmethod(_hasty))  # noqa: B010 - the same
