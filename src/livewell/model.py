"""Values and enums that the whole of Livewell shares. Pure: no I/O, no clock.

A job's life:

    delayed ──time came──▶ ready ──claim──▶ running ──▶ succeeded            (history)
                             ▲                │  ├────▶ cancelled            (history)
                             ├──retry, lost───┘  └────▶ failed               (dead letter) ──redrive──▶ ready
    held ──its turn──────────┘
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

from livewell.duration import Duration, seconds


class JobState(StrEnum):
    """Where a job is; the last three are ends."""

    DELAYED = "delayed"
    HELD = "held"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Lane(IntEnum):
    """Which of two lines a job waits in; people's is always served first."""

    PEOPLE = 0
    BACKGROUND = 1


class Answer(StrEnum):
    """What became of an enqueue."""

    INSERTED = "inserted"
    MERGED = "merged"


class Cancelled(StrEnum):
    """What became of asking to cancel a job."""

    NOW = "cancelled"
    REQUESTED = "requested"
    TOO_LATE = "finished"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to one enqueue: merged means a live job with the same key already stands for it."""

    answer: Answer
    id: int


class Claimed(NamedTuple):
    """One claimed job, exactly as the database handed it out. The fence is the proof of ownership.

    A named tuple, because a frozen dataclass of 13 fields takes eight times as long to make, once per job.
    """

    id: int
    fence: int
    attempt: int
    max_attempts: int
    lost: int
    lane: int
    rank: int
    queue: str
    kind: str
    payload: str
    unique_key: str | None
    group_key: str | None
    trace: str | None


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler failed; another attempt follows while there are some, after delay_seconds or the queue's back-off."""

    error: str
    delay_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """It will never succeed: a dead letter at once, with the reason."""

    error: str
    reason: str = "refused"


@dataclass(frozen=True, slots=True)
class Released:
    """Not the job's fault: back to the queue, the attempt is not counted."""

    why: str
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """It ended because somebody asked for it."""

    note: str = "cancelled while it ran"


Outcome = Succeeded | Failed | Refused | Released | Stopped


class Retry(Exception):
    """Raise in a handler to be run again later: raise Retry(after="30s"). Counts as an attempt."""

    def __init__(self, reason: str = "asked to be retried", *, after: Duration | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else min(seconds(after, "Retry after"), 366 * 86400.0)


class Cancel(Exception):
    """Raise in a handler to end the job as cancelled: not an error, not retried."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between attempts: base · 2ⁿ up to the cap, ± 20 %."""

    base_seconds: float = 5.0
    cap_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class TaskPolicy:
    """What a task declares about how it is run."""

    queue: str
    attempts: int | None
    timeout_seconds: float
    lane: Lane
    priority: int


Handler = Callable[..., Any]
