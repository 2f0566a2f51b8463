"""The outbox on the shared database of a folder of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.outbox_sql import TABLES, OutboxSession


@pytest.fixture
def outbox(queue_dsn: str) -> Iterator[OutboxSession]:
    """Two topics, one sink, no events; the clock stands still."""
    with OutboxSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.freeze()
        session.reset()
        yield session
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.connection.execute("; ".join(f"DELETE FROM livewell.{table}" for table in TABLES).encode())


@pytest.fixture
def other_outbox(queue_dsn: str) -> Iterator[OutboxSession]:
    """A second session on the same database."""
    with OutboxSession(queue_dsn) as session:
        yield session
