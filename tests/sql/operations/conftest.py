"""One database for this folder, emptied before each test."""

from tests.support.alerts_fixtures import alerts
from tests.support.fixtures import queue_dsn
from tests.support.refresh_fixtures import other_refresh, refresh

__all__ = ["alerts", "other_refresh", "queue_dsn", "refresh"]
