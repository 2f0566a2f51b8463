"""One database for this folder, emptied before each test."""

from tests.support.alerts_fixtures import alerts
from tests.support.fixtures import queue_dsn

__all__ = ["alerts", "queue_dsn"]
