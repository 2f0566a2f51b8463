"""What the queue should do, in a hundred lines of plain Python: no locks, no indexes, no SQL.

The database is compared with it after every step.

Time is whole seconds since the start. Ranks are only compared with each other, so they are seconds
too: a priority point is worth sixty of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LEASE = 40
LOST_MAX = 3


@dataclass(slots=True)
class ModelJob:
    """One live job."""

    id: int
    lane: int
    priority: int
    max_attempts: int
    key: str | None
    run_at: int
    rank: int
    state: str
    attempt: int = 0
    lost: int = 0
    fence: int = 0
    worker: int | None = None
    deadline: int | None = None
    cancel: bool = False


@dataclass(slots=True)
class ModelWorker:
    """One lease."""

    renewed: int
    steady: int


@dataclass(slots=True)
class Letter:
    """One dead letter: the job as it was, and why."""

    job: ModelJob
    reason: str


@dataclass(slots=True)
class QueueModel:
    """The whole queue."""

    now: int = 0
    paused: bool = False
    jobs: dict[int, ModelJob] = field(default_factory=dict)
    workers: dict[int, ModelWorker] = field(default_factory=dict)
    history: dict[int, str] = field(default_factory=dict)
    dead: dict[int, Letter] = field(default_factory=dict)

    # -- clients ----------------------------------------------------------------------------------

    def enqueue(
        self, job: int, *, lane: int, priority: int, max_attempts: int, key: str | None, delay: int
    ) -> int | None:
        """None if it was inserted, else the id of the live job with its key."""
        if key is not None and (other := self.with_key(key)) is not None:
            return other
        due = self.now + delay
        state = "delayed" if delay else "ready"
        self.jobs[job] = ModelJob(job, lane, priority, max_attempts, key, due, due - 60 * priority, state)
        return None

    def with_key(self, key: str) -> int | None:
        return next((job.id for job in self.jobs.values() if job.key == key), None)

    def known(self, job: int) -> bool:
        return job in self.jobs or job in self.history or job in self.dead

    def cancel(self, job: int) -> str:
        if job not in self.jobs:
            return "finished" if self.known(job) else "unknown"
        if self.jobs[job].state == "running":
            self.jobs[job].cancel = True
            return "requested"
        self.end(job, "cancelled")
        return "cancelled"

    def hasten(self, job: int) -> bool:
        if job not in self.jobs or self.jobs[job].state != "delayed":
            return False
        self.again(self.jobs[job], 0)
        return True

    def redrive(self, ids: Iterable[int]) -> tuple[int, int]:
        """In the order of key and id, as keys are taken on the way."""
        picked = sorted((i for i in ids if i in self.dead), key=lambda i: (self.dead[i].job.key or "\uffff", i))
        went = 0
        for job in picked:
            old = self.dead[job].job
            if old.key is None or self.with_key(old.key) is None:
                del self.dead[job]
                self.enqueue(
                    job, lane=old.lane, priority=old.priority, max_attempts=old.max_attempts, key=old.key, delay=0
                )
                went += 1
        return went, len(picked) - went

    # -- workers ----------------------------------------------------------------------------------

    def claim(self, worker: int, limit: int, *, empty: bool) -> list[int]:
        """Which jobs this worker gets, in order."""
        if worker not in self.workers or self.paused:
            return []
        ready = sorted((j for j in self.jobs.values() if j.state == "ready"), key=lambda j: (j.lane, j.rank, j.id))
        suspects = [job.id for job in ready if job.lost]
        if empty and suspects:
            return suspects[:1]
        return [job.id for job in ready if not job.lost][:limit]

    def claimed(self, worker: int, job: int, fence: int) -> None:
        one = self.jobs[job]
        one.state, one.worker, one.fence, one.attempt, one.deadline = "running", worker, fence, one.attempt + 1, None

    def owns(self, worker: int, job: int, fence: int) -> bool:
        one = self.jobs.get(job)
        return one is not None and (one.worker, one.fence) == (worker, fence)

    def held_by(self, worker: int) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.worker == worker]

    def renew(self, worker: int) -> bool:
        if worker not in self.workers:
            return False
        one = self.workers[worker]
        if 3 * (self.now - one.renewed) > LEASE:
            one.steady = self.now
        one.renewed = self.now
        return True

    def recover(self, worker: int, grace: int) -> tuple[int, int, int]:
        """(buried, lost, overdue)."""
        undertaker = self.workers.get(worker)
        gone: list[int] = []
        if undertaker and 3 * (self.now - undertaker.renewed) <= LEASE <= self.now - undertaker.steady:
            gone = [i for i, other in self.workers.items() if other.renewed + LEASE < self.now]
        for one in gone:
            del self.workers[one]
        lost = [job for job in self.jobs.values() if job.state == "running" and job.worker not in self.workers]
        for job in lost:
            self.settle(job.id, "lost", 0)
        overdue = [j for j in self.jobs.values() if j.deadline is not None and j.deadline < self.now - grace]
        for job in overdue:
            self.settle(job.id, "retry", 0)
        return len(gone), len(lost), len(overdue)

    def promote(self) -> int:
        due = [job for job in self.jobs.values() if job.state == "delayed" and job.run_at <= self.now]
        for job in due:
            job.state, job.rank = "ready", job.run_at - 60 * job.priority
        return len(due)

    def release(self, worker: int) -> int:
        self.workers.pop(worker, None)
        held = self.held_by(worker)
        for job in held:
            self.settle(job.id, "released", 0)
        return len(held)

    # -- ends -------------------------------------------------------------------------------------

    def settle(self, job: int, outcome: str, delay: int) -> None:
        """Where an outcome leads."""
        one = self.jobs[job]
        if outcome == "cancelled" or (one.cancel and outcome != "refused"):
            self.end(job, "cancelled")
        elif outcome == "refused":
            self.bury(one, "refused")
        elif outcome == "retry" and one.attempt >= one.max_attempts:
            self.bury(one, "attempts")
        elif outcome == "lost" and one.lost + 1 >= LOST_MAX:
            self.bury(one, "lost")
        else:
            if outcome in ("released", "lost"):
                one.attempt -= 1
            one.lost += outcome == "lost"
            self.again(one, delay)

    def again(self, job: ModelJob, delay: int) -> None:
        job.state = "delayed" if delay else "ready"
        job.run_at = self.now + delay
        job.rank = job.run_at - 60 * job.priority
        job.worker = job.deadline = None

    def bury(self, job: ModelJob, reason: str) -> None:
        del self.jobs[job.id]
        self.dead[job.id] = Letter(job, reason)

    def end(self, job: int, outcome: str) -> None:
        del self.jobs[job]
        self.history[job] = outcome
