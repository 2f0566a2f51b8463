"""The refresh engine on the shared database of a folder of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.refresh_sql import RefreshSession


@pytest.fixture
def refresh(queue_dsn: str) -> Iterator[RefreshSession]:
    """A session on the shared database.

    Every table empty but one upstream and one type, the clock as it is outside.
    """
    with RefreshSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()


@pytest.fixture
def other_refresh(queue_dsn: str) -> Iterator[RefreshSession]:
    """A second session on the same database."""
    with RefreshSession(queue_dsn) as session:
        yield session
