"""§3.2: every job of a claim has its own number, and only who holds id, number and incarnation may end it."""

from __future__ import annotations

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

FINISH = "SELECT * FROM livewell.finish_jobs(%(worker)s, %(ids)s::bigint[], %(fences)s::bigint[])"


def stale_result_beside_a_fresh_one(queue: QueueSession) -> tuple[list[tuple[int, ...]], str]:
    """Send an OLD result of a job that the same worker claimed again, beside a fresh one.

    A worker claims job and neighbour, loses the job to its deadline, claims it again beside a
    third, and now sends the old result with the third's.
    """
    worker = queue.register()
    job, _neighbour = queue.enqueue(2)
    old = next(claim for claim in queue.claim(worker) if claim.id == job)
    queue.renew(worker, old, timeout=0)
    queue.advance(1)
    assert queue.recover(worker) == (0, 0, 1)
    queue.rows("SELECT livewell.hasten_job(%s)", job)
    queue.enqueue()
    third = next(claim for claim in queue.claim(worker) if claim.id != job)
    return queue.finish(old, third), queue.state(job)


def test_a_stale_result_does_not_finish_the_job_that_was_claimed_again(queue: QueueSession) -> None:
    """Although its id and the newer claim's fences travel in the same call."""
    fenced, state = stale_result_beside_a_fresh_one(queue)

    assert len(fenced) == 1
    assert state == "running"


def test_without_a_fence_per_job_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """One fence per batch: the stale result finishes the job that runs again."""
    one_per_batch = ("v_fence + width_bucket(j.id, v_found)", "v_fence + 1")
    with variant(queue_dsn, "claim_jobs", one_per_batch):
        fenced, state = stale_result_beside_a_fresh_one(queue)

    assert (fenced, state) == ([], "succeeded")


async def zombie_against_recovery_and_the_next_owner(queue: QueueSession, queue_dsn: str) -> list[str]:
    """Every order of: the zombie finishes, recovery takes its job back, the next owner claims."""

    def prepare() -> Given:
        queue.reset()
        zombie, owner = queue.register(), queue.steady()
        queue.enqueue(2)
        claims = queue.claim(zombie)
        queue.expire(zombie)
        return {
            "worker": zombie,
            "owner": owner,
            "ids": [claim.id for claim in claims],
            "fences": [claim.fence for claim in claims],
        }

    def judge(outcome: Outcome) -> str | None:
        fenced = {row[0] for row in outcome.answer("zombie")}
        for job in outcome.given["ids"]:
            state = queue.state(job)
            if (state == "succeeded") != (job not in fenced):
                return f"job {job} is {state}, the zombie was {'fenced' if job in fenced else 'told it is done'}"
        taken_back, finished = outcome.answer("recovery")[0][1], 2 - len(fenced)
        if taken_back + finished != 2:
            return f"{taken_back} jobs were taken back and the zombie finished {finished} of two"
        return f"errors: {outcome.errors}" if outcome.errors else None

    return await violations(
        queue_dsn,
        [
            session("zombie", FINISH),
            session("recovery", "SELECT * FROM livewell.recover_jobs(%(owner)s, 100, 0)"),
            session("owner", "SELECT id FROM livewell.claim_jobs(%(owner)s, '{work}', 1, true)"),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_a_zombie_ends_a_job_only_while_it_is_still_its_own(queue: QueueSession, queue_dsn: str) -> None:
    """In all ninety orders a job is succeeded exactly if the zombie was not told that it is fenced."""
    assert await zombie_against_recovery_and_the_next_owner(queue, queue_dsn) == []


async def test_without_the_incarnation_it_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """A job that recovery made ready still carries the old fence: the zombie would end it."""
    with variant(queue_dsn, "finish_jobs", (" AND j.worker = p_worker\n            RETURNING", " RETURNING")):
        assert await zombie_against_recovery_and_the_next_owner(queue, queue_dsn) != []


def test_without_the_fence_a_worker_that_claimed_again_breaks_it(queue: QueueSession, queue_dsn: str) -> None:
    """Matching only id and incarnation, the stale result ends the newer run of the same worker."""
    with variant(queue_dsn, "finish_jobs", ("j.fence = v_fences[width_bucket(j.fence, v_fences)] AND ", "")):
        _, state = stale_result_beside_a_fresh_one(queue)

    assert state == "succeeded"


def test_a_zombie_can_change_nothing(queue: QueueSession, other: QueueSession) -> None:
    """Finish, failure, progress and heartbeat of a buried worker: typed answers, no write."""
    zombie, owner = queue.register(), queue.steady()
    job = queue.enqueue()[0]
    stale = other.claim(zombie)[0]
    queue.expire(zombie)
    assert queue.recover(owner) == (1, 1, 0)
    fresh = queue.claim(owner, empty=True)[0]
    before = queue.rows("SELECT * FROM livewell.job")

    assert other.finish(stale) == [(job, stale.fence)]
    assert other.settle(stale, "retry", error="late") == [(job, stale.fence)]
    assert (
        other.value("SELECT livewell.report_progress(%s, %s, %s, '{50}', '{late}')", zombie, [stale.id], [stale.fence])
        == 0
    )
    assert other.renew(zombie, stale) == (False, 0, [], False)
    assert other.claim(zombie) == []
    assert queue.rows("SELECT * FROM livewell.job") == before
    assert queue.finish(fresh) == []
