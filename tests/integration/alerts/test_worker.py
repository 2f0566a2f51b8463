"""Alerts end to end: a worker with a channel in its settings tells the receiver.

It evaluates the rules by its schedule, and tells once, whoever comes later.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import livewell
from livewell.db.scratch import TestClock
from livewell.testing.processes import ChildProcess, eventually_async
from tests.integration.alerts.conftest import SIGNING
from tests.support.queue_sql import QueueSession
from tests.support.receiver import Receiver

ROOT = Path(__file__).parents[3]
START_SECONDS = 60.0
CHANNEL = {"name": "ops", "kind": "webhook", "address": "env:OPS_URL", "secret": "env:OPS_SECRET"}


def worker(dsn: str, receiver: Receiver) -> ChildProcess:
    """`livewell worker`, as an operator starts it."""
    environment = {
        "DATABASE_URL": dsn,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(livewell.__file__).parents[1])]),
        "LIVEWELL_ALERT_CHANNELS": json.dumps([CHANNEL]),
        "LIVEWELL_OUTBOUND_PRIVATE_HOSTS": "127.0.0.1",
        "OPS_URL": receiver.url,
        "OPS_SECRET": SIGNING,
    }
    return ChildProcess(
        ["-m", "livewell.cli", "worker", "tests.integration.schedule.scheduled_app:app"], cwd=ROOT, env=environment
    )


async def test_a_worker_tells_its_channel_once_and_so_does_the_next_one_not(
    livewell_dsn: str, livewell_clock: TestClock, receiver: Receiver
) -> None:
    """A background job has been waiting for an hour.

    Two workers, one after the other, look at it several times.
    """
    with QueueSession(livewell_dsn) as session:
        session.declare()
        session.enqueue(1, lane=1)
        livewell_clock.advance(3700)

        def runs() -> int:
            query = "SELECT count(*) FROM livewell.run WHERE schedule = 'livewell.alerts' AND state = 'succeeded'"
            return int(session.value(query))

        async def look() -> None:
            seen = runs()
            session.rows("SELECT livewell.ask_run('livewell.alerts')")
            await eventually_async(lambda: runs() > seen, 30)

        for _ in range(2):
            with worker(livewell_dsn, receiver) as child:
                await asyncio.to_thread(child.wait_for, "worker started", START_SECONDS)
                await look()
                await look()

        assert [one["data"]["rule"] for one in receiver.documents] == ["background_waiting"]
        assert session.rows("SELECT channel, state::text FROM livewell.notification") == [("ops", "sent")]
