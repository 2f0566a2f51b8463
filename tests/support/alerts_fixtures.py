"""Alerts on the shared database of a folder of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.alerts_sql import AlertSession


@pytest.fixture
def alerts(queue_dsn: str) -> Iterator[AlertSession]:
    """Every table empty; the clock stands still."""
    with AlertSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        session.freeze()
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
