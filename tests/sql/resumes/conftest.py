"""One database for this folder, emptied before each test."""

from tests.support.fixtures import queue_dsn
from tests.support.resumes_sql import resumes

__all__ = ["queue_dsn", "resumes"]
