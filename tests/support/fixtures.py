"""One database for a whole folder of tests, emptied before each.

A clone per test would cost more than the tests themselves.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from livewell.db import scratch
from tests.support.queue_sql import QueueSession


@pytest.fixture(scope="session")
def queue_dsn(livewell_server: str, livewell_template: str) -> Iterator[str]:
    """A migrated database with the virtual clock, shared by the tests of one process."""
    name = f"livewell_test_{secrets.token_hex(6)}"
    dsn = scratch.clone(livewell_server, livewell_template, name)
    scratch.TestClock(dsn)
    yield dsn
    scratch.drop(livewell_server, name)


@pytest.fixture
def queue(queue_dsn: str) -> Iterator[QueueSession]:
    """A session on that database.

    Every table empty, one queue declared, the clock as it is outside.
    """
    with QueueSession(queue_dsn) as session:
        session.rows("UPDATE livewell_test.clock SET ahead = '0', frozen_at = NULL")
        session.reset()
        yield session


@pytest.fixture
def other(queue_dsn: str) -> Iterator[QueueSession]:
    """A second session on the same database."""
    with QueueSession(queue_dsn) as session:
        yield session
