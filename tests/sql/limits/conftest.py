"""The queue's fixtures: a limiter is felt through the queue that has it."""

from tests.support.fixtures import other, queue, queue_dsn

__all__ = ["other", "queue", "queue_dsn"]
