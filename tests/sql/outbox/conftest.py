"""The shared database of this folder."""

from tests.support.fixtures import queue_dsn
from tests.support.outbox_fixtures import other_outbox, outbox

__all__ = ["other_outbox", "outbox", "queue_dsn"]
