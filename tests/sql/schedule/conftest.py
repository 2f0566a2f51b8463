"""The shared database of this folder, its schedule tables empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fixtures import queue_dsn
from tests.support.schedule_sql import ScheduleSession

__all__ = ["queue_dsn", "schedule"]


@pytest.fixture
def schedule(queue_dsn: str) -> Iterator[ScheduleSession]:
    """A session: one schedule, due every minute and due now; the clock as it is outside."""
    with ScheduleSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
