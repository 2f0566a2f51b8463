"""What a worker holds: every job it has claimed and whose end the database has not yet acknowledged.

    buffered ──slot takes it──▶ running ──handler ends──▶ result waits ──acknowledged──▶ gone
                                   │
                                   └── stop(reason): timeout | cancel | fenced | shutdown

Lives in the event loop's thread. The keeper asks for a snapshot and gets it from that thread: the
answer is also the proof that the loop still turns.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from livewell.model import Outcome
from livewell.queue.job import Job


class StopReason(Enum):
    """Why a running handler was ended from outside."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    FENCED = "fenced"
    SHUTDOWN = "shutdown"


@dataclass(slots=True, eq=False)
class Held:
    """One job in our hands."""

    job: Job
    timeout_seconds: float
    started: float = 0.0
    deadline_known: bool = False
    stop_reason: StopReason | None = None
    slot: asyncio.Task[None] | None = None
    outcome: Outcome | None = None
    uncertain: bool = False  # its finish was sent once without an answer

    def stop(self, reason: StopReason) -> None:
        """End the handler: async ones are cancelled, threads see cancel_requested."""
        if self.stop_reason is None and self.slot is not None:
            self.stop_reason = reason
            self.job.cancel_requested = True
            self.slot.cancel()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the keeper tells the database."""

    worker: int
    started_ids: list[int]
    started_fences: list[int]
    timeouts_seconds: list[float]
    known_fences: list[int]
    mark: int


@dataclass(slots=True)
class Holding:
    """The jobs of one incarnation."""

    worker: int = 0
    mark: int = 0  # the newest fence we know to have existed
    claim_mark: int | None = None  # the same, when the claim in flight was sent
    limited_mark: int | None = None  # and when the claim of limited jobs in flight was sent
    all: dict[int, Held] = field(default_factory=dict)  # by fence
    buffer: deque[Held] = field(default_factory=deque)
    running: dict[int, Held] = field(default_factory=dict)  # by fence
    in_calls: int = 0  # those of them that belong to limited queues
    results: deque[Held] = field(default_factory=deque)
    late: deque[Held] = field(default_factory=deque)  # not ours any more, but what their calls used is still to be said

    def add(self, held: Held, *, to_run: bool) -> None:
        """A claimed job arrived."""
        self.all[held.job.claimed.fence] = held
        if to_run:
            self.buffer.append(held)

    def drop(self, fence: int) -> Held | None:
        """Its end is acknowledged, or it is not ours any more."""
        return self.all.pop(fence, None)

    def snapshot(self) -> Snapshot:
        """Gather what the heartbeat sends.

        That is: handlers that started since the last heartbeat (it sets their deadlines), all known
        fences, and the mark below which those fences are complete.
        """
        fresh = [held for held in self.running.values() if not held.deadline_known]
        now = time.monotonic()
        return Snapshot(
            worker=self.worker,
            started_ids=[held.job.id for held in fresh],
            started_fences=[held.job.claimed.fence for held in fresh],
            timeouts_seconds=[max(0.0, held.timeout_seconds - (now - held.started)) for held in fresh],
            known_fences=list(self.all),
            mark=min(mark for mark in (self.mark, self.claim_mark, self.limited_mark) if mark is not None),
        )
