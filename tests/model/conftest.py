"""The shared database of this folder."""

from tests.support.fixtures import other, queue, queue_dsn
from tests.support.refresh_fixtures import refresh

__all__ = ["other", "queue", "queue_dsn", "refresh"]
