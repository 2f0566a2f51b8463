"""The shared database of this folder."""

from tests.support.contacts_sql import contacts
from tests.support.exports_sql import exports
from tests.support.fixtures import other, queue, queue_dsn
from tests.support.outbox_fixtures import outbox
from tests.support.refresh_fixtures import refresh

__all__ = ["contacts", "exports", "other", "outbox", "queue", "queue_dsn", "refresh"]
