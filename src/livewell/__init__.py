"""Livewell keeps third-party data fresh for whoever is watching it.

`Livewell` is the object that an application holds: it reads and watches values, enqueues and runs
tasks, and runs schedules. Everything that is public is in `__all__`.
"""

from livewell.app import Livewell
from livewell.errors import LivewellError
from livewell.limits.limiter import Breaker, Limiter
from livewell.model import Answer, Backoff, Blame, Cancel, Cancelled, Enqueued, JobState, Lane, Policy, Release, Retry
from livewell.outbox.emit import NewEvent
from livewell.queue.batch import Batch
from livewell.queue.job import Job
from livewell.queue.task import Task
from livewell.refresh.reading import Reading
from livewell.settings import Settings

__all__ = [
    "Answer",
    "Backoff",
    "Batch",
    "Blame",
    "Breaker",
    "Cancel",
    "Cancelled",
    "Enqueued",
    "Job",
    "JobState",
    "Lane",
    "Limiter",
    "Livewell",
    "LivewellError",
    "NewEvent",
    "Policy",
    "Reading",
    "Release",
    "Retry",
    "Settings",
    "Task",
]
