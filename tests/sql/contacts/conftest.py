"""One database for this folder, emptied before each test."""

from tests.support.contacts_sql import contacts
from tests.support.fixtures import queue_dsn

__all__ = ["contacts", "queue_dsn"]
