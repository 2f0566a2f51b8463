"""Asking whether the database is there leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from livewell.db import Database
from livewell.db.presence import Presence
from livewell.settings import Settings


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors as Linux shows them")
async def test_a_login_that_is_cut_off_is_closed_at_once(livewell_settings: Settings, livewell_dsn: str) -> None:
    """R22: a presence that is closed in the middle of its login keeps no connection.

    At any point of the login: a connection that waits for a password holds up every DROP DATABASE
    of the server for a minute. Seen failing while close() did not wait for the question under way.
    """
    database = Database(livewell_dsn, livewell_settings)
    await database.open()
    gc.disable()
    try:
        await _ask_and_close(database, 0.05)
        before = _descriptors()
        for step in range(40):
            await _ask_and_close(database, step * 0.0005)
        assert _descriptors() <= before
    finally:
        gc.enable()
        await database.close()


async def _ask_and_close(database: Database, seconds: float) -> None:
    async with Presence(database):
        await asyncio.sleep(seconds)


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
