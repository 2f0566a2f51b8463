"""The shared database of this folder."""

from tests.support.fixtures import other, queue, queue_dsn

__all__ = ["other", "queue", "queue_dsn"]
