"""Schedulers in this process, on the test's own database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from livewell import Settings
from tests.integration.schedule.stage import Stage
from tests.support.http import logins
from tests.support.schedule_sql import ScheduleSession


@pytest.fixture(scope="session")
def server_logins(livewell_server: str, livewell_template: str) -> Iterator[dict[str, tuple[str, str]]]:
    """Logins of the server's roles."""
    assert livewell_template  # the roles come with it
    with logins(livewell_server) as made:
        yield made


@pytest.fixture
def rows(livewell_dsn: str) -> Iterator[ScheduleSession]:
    """A look into the database."""
    with ScheduleSession(livewell_dsn) as session:
        yield session


@pytest.fixture
async def stage(livewell_settings: Settings, rows: ScheduleSession) -> AsyncIterator[Stage]:
    """Schedulers, apps and what waits for them."""
    made = Stage(livewell_settings, rows)
    await made.open()
    yield made
    await made.close()
