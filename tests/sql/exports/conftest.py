"""One database for this folder, emptied before each test."""

from tests.support.exports_sql import exports
from tests.support.fixtures import queue_dsn

__all__ = ["exports", "queue_dsn"]
