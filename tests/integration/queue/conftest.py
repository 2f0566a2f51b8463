"""Opens an app on the test's own database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from livewell import Livewell, Settings
from tests.integration.queue.bench import Bench, Open


@pytest.fixture
async def open_app(livewell_settings: Settings) -> AsyncIterator[Open]:
    """Open an app that the test has declared its tasks on."""
    opened: list[Livewell] = []

    async def open_(app: Livewell) -> Bench:
        opened.append(await app.open(settings=livewell_settings))
        return Bench(app)

    yield open_
    for app in opened:
        await app.close()
