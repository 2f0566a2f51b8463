"""Alerts on a shared database, an open pool on it, and a receiver on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from livewell.alerts.channel import Channel
from livewell.db import Database
from livewell.settings import Settings
from tests.support.alerts_fixtures import alerts
from tests.support.fixtures import queue_dsn
from tests.support.receiver import Receiver

__all__ = ["alerts", "database", "queue_dsn", "receiver", "webhook"]

SIGNING = "signed by a test, and long enough"


@pytest.fixture
async def database(queue_dsn: str) -> AsyncIterator[Database]:
    """As a worker has it; receivers may be on this machine, and have a second to answer."""
    settings = Settings(
        database_url=SecretStr(queue_dsn), outbound_private_hosts=("127.0.0.1",), alert_send_seconds=1, pool_size_max=5
    )
    opened = Database(queue_dsn, settings)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """One that says yes."""
    async with Receiver() as running:
        yield running


@pytest.fixture
def webhook(receiver: Receiver) -> Channel:
    """A signed webhook to it."""
    return Channel("ops", "webhook", "P2", "env:OPS", SecretStr(receiver.url), SecretStr(SIGNING))
