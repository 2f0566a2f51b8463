"""Livewell keeps third-party data fresh for whoever is watching it. What exists today is its core: a Postgres job queue that loses nothing."""

from livewell.app import Livewell
from livewell.errors import LivewellError
from livewell.model import Answer, Backoff, Cancel, Cancelled, Enqueued, JobState, Lane, Retry
from livewell.queue.handle import Task
from livewell.queue.job import Job
from livewell.settings import Settings

__all__ = [
    "Answer",
    "Backoff",
    "Cancel",
    "Cancelled",
    "Enqueued",
    "Job",
    "JobState",
    "Lane",
    "Livewell",
    "LivewellError",
    "Retry",
    "Settings",
    "Task",
]
