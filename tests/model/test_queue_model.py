"""Random lives of a queue, on a real database with a virtual clock, compared with the model after every step.

The quick form is the same 100 examples in every run; LIVEWELL_MODEL_EXAMPLES=5000 tries that many
new ones. A failure prints the steps and a blob that repeats them. Seen to fail within those when a
release did not give its attempt back, when a suspect was claimed beside others, when a cancellation
that was asked for was forgotten, when reconciling had no mark, when burying needed no calm, and
when a finish did not match the incarnation.
"""

from __future__ import annotations

import os
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model.queue_model import LEASE, LOST_MAX, ModelWorker, QueueModel
from tests.support.queue_sql import FENCES, Claim, QueueSession

EXAMPLES = int(os.environ.get("LIVEWELL_MODEL_EXAMPLES", "0"))
GRACE = 5

EVERYTHING = """
SELECT 'live', jsonb_agg(jsonb_build_array(id, state, attempt, lost, fence, worker, cancel_requested) ORDER BY id) FROM livewell.job
UNION ALL SELECT 'history', jsonb_agg(jsonb_build_array(id, outcome) ORDER BY id) FROM livewell.job_history
UNION ALL SELECT 'dead', jsonb_agg(jsonb_build_array(id, reason) ORDER BY id) FROM livewell.dead_job
UNION ALL SELECT 'workers', jsonb_agg(jsonb_build_array(id) ORDER BY id) FROM livewell.worker
"""

# A number picks one of what there is; a bundle inside a list would throw away every example in
# which it is still empty.
picks = st.integers(0, 11)
seconds = st.sampled_from([1, 5, 13, 14, 41, 200])
keys = st.sampled_from([None, None, "a", "b"])


def has_jobs(machine: QueueMachine) -> bool:
    return bool(machine.jobs)


def has_claims(machine: QueueMachine) -> bool:
    return bool(machine.claims)


class QueueMachine(RuleBasedStateMachine):
    """One queue, a few workers, everything that can happen to a job."""

    def __init__(self, queue: QueueSession) -> None:
        super().__init__()
        self.queue = queue
        self.model = QueueModel()
        self.jobs: list[int] = []
        self.workers: list[int] = []
        self.claims: list[Claim] = []  # also those that are long over: a zombie keeps its own

    @initialize()
    def two_workers_on_an_empty_queue(self) -> None:
        self.queue.rows("UPDATE livewell_test.clock SET ahead = '0'")
        self.queue.reset()
        # No back-off: a retry without a stated delay is ready at once, so that nothing depends on
        # jitter.
        self.queue.rows(
            "UPDATE livewell.queue SET backoff_base_seconds = 0, backoff_cap_seconds = 0, lost_max = %s", LOST_MAX
        )
        self.register()
        self.register()
        self.enqueue(n=3, key=None, lane=1, priority=0, delay=0, max_attempts=2)

    # -- clients ----------------------------------------------------------------------------------

    @rule(
        n=st.integers(1, 3),
        key=keys,
        lane=st.sampled_from([0, 1]),
        priority=st.integers(-1, 1),
        delay=st.sampled_from([0, 0, 10]),
        max_attempts=st.integers(1, 3),
    )
    def enqueue(self, *, n: int, key: str | None, lane: int, priority: int, delay: int, max_attempts: int) -> None:
        ids = self.queue.ids(n)
        options: dict[str, Any] = {"lane": lane, "priority": priority, "max_attempts": max_attempts}
        answers = self.queue.enqueue_given({"id": i, "unique_key": key, "delay_seconds": delay, **options} for i in ids)
        merged = [
            (i, other) for i in ids if (other := self.model.enqueue(i, key=key, delay=delay, **options)) is not None
        ]
        assert sorted(answers) == [(i, "merged", other) for i, other in merged]
        self.jobs += ids

    @precondition(has_jobs)
    @rule(pick=picks)
    def enqueue_again(self, pick: int) -> None:
        """As after an answer that was lost, without its key."""
        job = self.jobs[pick % len(self.jobs)]
        if self.model.known(job):
            assert self.queue.enqueue_given([{"id": job}], again=True) == [(job, "known", job)]

    @precondition(has_jobs)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        job = self.jobs[pick % len(self.jobs)]
        assert self.queue.cancel(job) == self.model.cancel(job)

    @precondition(has_jobs)
    @rule(pick=picks)
    def hasten(self, pick: int) -> None:
        job = self.jobs[pick % len(self.jobs)]
        assert self.queue.value("SELECT livewell.hasten_job(%s)", job) == self.model.hasten(job)

    @precondition(lambda self: self.model.dead)
    @rule(some=st.one_of(st.none(), st.lists(picks, max_size=3)))
    def redrive(self, some: list[int] | None) -> None:
        dead = sorted(self.model.dead)
        ids = None if some is None else sorted({dead[pick % len(dead)] for pick in some})
        expected = self.model.redrive(list(self.model.dead) if ids is None else ids)
        assert self.queue.redrive(ids) == expected

    @rule(paused=st.sampled_from([False, False, False, True]))
    def pause(self, paused: bool) -> None:
        self.queue.pause(paused=paused)
        self.model.paused = paused

    # -- time -------------------------------------------------------------------------------------

    @rule(by=seconds)
    def advance(self, by: int) -> None:
        self.queue.advance(by)
        self.model.now += by

    @rule(pick=picks)
    def all_but_one_live_on(self, pick: int) -> None:
        """The others renew for more than a lease, and recover.

        Whoever is silent loses what it holds.
        """
        silent = self._worker(pick)
        for _ in range(4):
            self.advance(12)
            for worker in list(self.model.workers):
                if worker != silent:
                    assert self.queue.renew(worker)[0] == self.model.renew(worker)
        for worker in list(self.model.workers):
            self._recovered(worker)

    @rule()
    def promote(self) -> None:
        assert self.queue.promote() == self.model.promote()

    # -- workers ----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.model.workers) < 4)
    @rule()
    def register(self) -> None:
        worker = self.queue.register(lease=LEASE)
        self.model.workers[worker] = ModelWorker(self.model.now, self.model.now)
        self.workers.append(worker)

    @rule(pick=picks, limit=st.integers(1, 4))
    def claim(self, pick: int, limit: int) -> None:
        self._claimed(self._worker(pick), limit)

    @precondition(lambda self: not self.model.paused)
    @rule(pick=picks)
    def new_work_is_claimed(self, pick: int) -> None:
        """So that most lives have something to lose."""
        self.enqueue(n=2, key=None, lane=1, priority=0, delay=0, max_attempts=2)
        self._claimed(self._worker(pick), 3)

    def _claimed(self, worker: int, limit: int) -> None:
        empty = not self.model.held_by(worker)
        expected = self.model.claim(worker, limit, empty=empty)
        claims = self.queue.claim(worker, limit, empty=empty)
        assert [claim.id for claim in claims] == expected
        for claim in claims:
            self.model.claimed(worker, claim.id, claim.fence)
        self.claims += claims

    @precondition(has_claims)
    @rule(some=st.lists(picks, min_size=1, max_size=3))
    def finish(self, some: list[int]) -> None:
        """Each worker sends its own; some of them are zombies."""
        batch = self._some_claims(some)
        for worker in {claim.worker for claim in batch}:
            mine = [claim for claim in batch if claim.worker == worker]
            fenced = [(c.id, c.fence) for c in mine if not self.model.owns(worker, c.id, c.fence)]
            assert sorted(self.queue.finish(*mine)) == sorted(fenced)
            for claim in mine:
                if (claim.id, claim.fence) not in fenced:
                    self.model.end(claim.id, "succeeded")

    @precondition(has_claims)
    @rule(
        pick=picks,
        outcome=st.sampled_from(["retry", "refused", "cancelled", "released"]),
        delay=st.sampled_from([None, 0, 10]),
    )
    def settle(self, pick: int, outcome: str, delay: int | None) -> None:
        claim = self._some_claims([pick])[0]
        owned = self.model.owns(claim.worker, claim.id, claim.fence)
        assert self.queue.settle(claim, outcome, delay_seconds=delay) == ([] if owned else [(claim.id, claim.fence)])
        if owned:
            self.model.settle(claim.id, outcome, delay or 0)

    @rule(pick=picks, some=st.lists(picks, max_size=2), timeout=st.sampled_from([1, 30]))
    def heartbeat(self, pick: int, some: list[int], timeout: int) -> None:
        worker, started = self._worker(pick), self._some_claims(some)
        alive, mark, cancel, _ = self.queue.renew(worker, *started, timeout=timeout)
        assert alive == self.model.renew(worker)
        if alive:
            for claim in started:
                if self.model.owns(worker, claim.id, claim.fence):
                    self.model.jobs[claim.id].deadline = self.model.now + timeout
            assert sorted(cancel) == sorted(job.fence for job in self.model.held_by(worker) if job.cancel)
            assert mark == self.queue.mark()

    @rule(pick=picks)
    def recover(self, pick: int) -> None:
        self._recovered(self._worker(pick))

    def _recovered(self, worker: int) -> None:
        assert self.queue.recover(worker, grace=GRACE) == self.model.recover(worker, GRACE)

    @rule(pick=picks, some=st.lists(picks, max_size=3), behind=st.integers(0, 3))
    def reconcile(self, pick: int, some: list[int], behind: int) -> None:
        worker, known = self._worker(pick), self._some_claims(some)
        mark = self.queue.mark() - behind * FENCES // 2  # also in the middle of a block, where there are no fences
        fences = {claim.fence for claim in known}
        unknown = [job for job in self.model.held_by(worker) if job.fence <= mark and job.fence not in fences]
        assert self.queue.reconcile(worker, *known, mark=mark) == len(unknown)
        for job in unknown:
            self.model.settle(job.id, "released", 0)

    @rule(pick=picks)
    def release(self, pick: int) -> None:
        worker = self._worker(pick)
        assert self.queue.release(worker) == self.model.release(worker)

    def _worker(self, pick: int) -> int:
        """Mostly one that lives, sometimes one that was buried or has left."""
        pool = [*sorted(self.model.workers) * 3, self.workers[0]]
        return pool[pick % len(pool)]

    def _some_claims(self, some: list[int]) -> list[Claim]:
        """The newest for small numbers: those are most often still held."""
        return list({self.claims[-1 - pick % len(self.claims)]: None for pick in some}) if self.claims else []

    # -- what must be true after every step -------------------------------------------------------

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        """In one round trip: it is asked after every step."""
        model = self.model
        rows = {kind: found or [] for kind, found in self.queue.rows(EVERYTHING)}
        assert rows["live"] == sorted(
            [j.id, j.state, j.attempt, j.lost, j.fence, j.worker, j.cancel] for j in model.jobs.values()
        )
        assert rows["history"] == sorted([job, outcome] for job, outcome in model.history.items())
        assert rows["dead"] == sorted([job, letter.reason] for job, letter in model.dead.items())
        assert rows["workers"] == sorted([worker] for worker in model.workers)


def test_the_queue_does_what_the_model_does(queue: QueueSession) -> None:
    """Whatever happens, in whatever order."""
    queue.freeze()
    run_state_machine_as_test(
        cast("type[QueueMachine]", lambda: QueueMachine(queue)),  # it only calls it
        settings=settings(
            max_examples=EXAMPLES or 100,
            stateful_step_count=50,
            derandomize=not EXAMPLES,
            print_blob=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
