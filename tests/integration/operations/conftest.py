"""Systems to be examined: rows as the product makes them.

Each is on a database of the test's own, with a clock that can be moved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from livewell import Settings
from livewell.db.scratch import TestClock
from livewell.operations.doctor import Finding, examine
from tests.integration.operations.told import check_told
from tests.support.market import Market
from tests.support.market import market as opened_market
from tests.support.refresh_sql import RefreshSession

BUSY_SECONDS = 30.0  # for one check: the usual two may be over on a busy machine
Examine = Callable[[], Awaitable[dict[str, Finding]]]


@pytest.fixture
def sick(livewell_dsn: str, livewell_clock: TestClock) -> Iterator[RefreshSession]:
    """A session on that database, with one upstream, one type and one queue."""
    assert livewell_clock
    with RefreshSession(livewell_dsn) as session:
        session.reset()
        yield session


@pytest.fixture
def doctor(livewell_dsn: str, livewell_settings: Settings) -> Examine:
    """What the doctor finds there, by word; of several findings with one word, the first.

    The replaced clock is a change by hand, and he says so: schema_drift.
    """

    async def find() -> dict[str, Finding]:
        found = await examine(livewell_dsn, livewell_settings, check_seconds=BUSY_SECONDS)
        for finding in found:
            check_told(finding)
        return {finding.word: finding for finding in reversed(found)}

    return find


@pytest.fixture
async def market(livewell_settings: Settings, tmp_path: Path) -> AsyncIterator[Market]:
    """Simulator, app, upstream without limits, and the quote type; no worker yet."""
    async with opened_market(livewell_settings, tmp_path) as opened:
        yield opened
