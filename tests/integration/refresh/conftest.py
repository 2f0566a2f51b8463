"""An app with the simulated upstream behind it, for each test its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from livewell import Settings
from tests.support.market import Market
from tests.support.market import market as opened_market


@pytest.fixture
async def market(livewell_settings: Settings, tmp_path: Path) -> AsyncIterator[Market]:
    """Simulator, app, upstream without limits, and the quote type; no worker yet."""
    async with opened_market(livewell_settings, tmp_path) as opened:
        yield opened
