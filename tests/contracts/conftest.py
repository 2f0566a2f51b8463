"""The shared database of this folder."""

from tests.support.fixtures import other, queue, queue_dsn
from tests.support.refresh_fixtures import other_refresh, refresh

__all__ = ["other", "other_refresh", "queue", "queue_dsn", "refresh"]
