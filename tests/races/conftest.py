"""The shared database of this folder, and a server of its own for what makes and drops roles."""

from tests.sql.db.conftest import admin_dsn, fresh_dsn
from tests.support.alerts_fixtures import alerts
from tests.support.fixtures import other, queue, queue_dsn
from tests.support.outbox_fixtures import other_outbox, outbox
from tests.support.refresh_fixtures import other_refresh, refresh

__all__ = [
    "admin_dsn",
    "alerts",
    "fresh_dsn",
    "other",
    "other_outbox",
    "other_refresh",
    "outbox",
    "queue",
    "queue_dsn",
    "refresh",
]
