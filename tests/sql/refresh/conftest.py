"""One database for this folder, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fixtures import queue_dsn
from tests.support.refresh_fixtures import other_refresh, refresh
from tests.support.registry_sql import RegistrySession

__all__ = ["other_refresh", "queue_dsn", "refresh", "registry"]


@pytest.fixture
def registry(queue_dsn: str) -> Iterator[RegistrySession]:
    """A session on a registry with one upstream and no types."""
    with RegistrySession(queue_dsn) as session:
        session.clear()
        session.apply_upstream()
        yield session
