"""Values and enums that the whole of Livewell shares. Pure: no I/O, no clock.

A job's life:

    delayed ──time came──▶ ready ──claim──▶ running ──▶ succeeded            (history)
                             ▲                │  ├────▶ cancelled            (history)
                             ├──retry, lost───┘  └────▶ failed               (dead letter) ──redrive──▶ ready
    held ──its turn──────────┘
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
    MERGED = "merged"  # a live job with the key stands for it
    HELD = "held"  # runs after the live job with the key
    DROPPED = "dropped"  # another one is held already, and will do


class Policy(StrEnum):
    """What an enqueue does when a live job has its unique key already."""

    KEEP = "keep"  # nothing: that job stands for this one
    RAISE = "raise"  # while it waits, it gets the better lane and rank of the two
    REPLACE = "replace"  # while it waits, it gets the new payload; while it runs, the new one runs after it
    AGAIN = "again"  # the new one runs after it


class Blame(StrEnum):
    """Whose fault a failure is; only the upstream's counts for the breaker."""

    UPSTREAM = "upstream"  # counts once for a job that is tried again and again, and once for its key
    # the upstream as a whole, whatever was asked for: no connection, no credential accepted; counts
    # each time
    OUTAGE = "outage"
    DATA = "data"  # it answered, but the key or the value is bad
    OURS = "ours"
    WALL = "wall"  # the upstream says that the bandwidth is used up


class Cancelled(StrEnum):
    """What became of asking to cancel a job."""

    NOW = "cancelled"
    REQUESTED = "requested"
    TOO_LATE = "finished"
    UNKNOWN = "unknown"
    CHANGED = "changed"  # it is in another state than it was seen in: nothing was done


class Enqueued(NamedTuple):
    """The answer to one enqueue.

    `id` is the job that stands for it: itself, the one it was merged into, or the one that is held.
    """

    answer: Answer
    id: int


class Claimed(NamedTuple):
    """One claimed job, exactly as the database handed it out. The fence is the proof of ownership.

    A named tuple, because a frozen dataclass of 13 fields takes eight times as long to make, once
    per job.
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
class Permit:
    """What came with a job of a limited queue.

    It says which call the job belongs to, under which credential, and until when the call may be
    made.
    """

    call: int  # the fence of the call's first job; jobs with the same number are one call
    call_key: str | None
    credential: str
    until: float | None  # monotonic; None: the queue has no limiter


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler failed.

    If attempts are left another one follows, after delay_seconds or the queue's back-off.
    """

    error: str
    delay_seconds: float | None = None
    blame: Blame = Blame.OURS
    cause: str = field(default="", compare=False)  # type and place: failures alike in both are told together
    traceback: str | None = field(default=None, compare=False, repr=False)


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


@dataclass(frozen=True, slots=True)
class FinishedElsewhere:
    """The job's end is committed already, in its own transaction or with what it stored.

    Nothing is left to write. `outcome` says how the run went, for counters and the log.
    """

    outcome: Outcome = field(default_factory=Succeeded)


# How a run ended, as the worker hears it; None: the job is no longer ours.
RunEnd = Outcome | FinishedElsewhere | None


class Retry(Exception):
    """Raise in a handler to be run again later. Counts as an attempt.

    `raise Retry("503", after="30s", blame=Blame.UPSTREAM)`.
    """

    def __init__(
        self, reason: str = "asked to be retried", *, after: Duration | None = None, blame: Blame = Blame.OURS
    ) -> None:
        super().__init__(reason)
        self.after = None if after is None else min(seconds(after, "Retry after"), 366 * 86400.0)
        self.blame = Blame(blame)


class Release(Exception):
    """Raise in a handler to hand the job back through no fault of its own.

    It does not count as an attempt, and is tried again after a while.
    """

    def __init__(self, reason: str, *, after: Duration = 0) -> None:
        super().__init__(reason)
        self.after = min(seconds(after, "Release after"), 366 * 86400.0)


class Cancel(Exception):
    """Raise in a handler to end the job as cancelled: not an error, not retried."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between attempts: base · 2ⁿ up to the cap, ± 20 %."""

    base_seconds: float = 5.0
    cap_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """What is declared about a queue."""

    attempts: int
    backoff: Backoff
    concurrency: int | None
    group_limit: int | None
    limiter: str | None
    stated: bool = True  # False: merely named by a task, so it changes nothing that somebody stated


@dataclass(frozen=True, slots=True)
class TaskPolicy:
    """What a task declares about how it is run."""

    queue: str
    attempts: int | None
    timeout_seconds: float
    lane: Lane
    priority: int
    batch: int = 1  # how many jobs one run of the handler takes


Handler = Callable[..., Any]
