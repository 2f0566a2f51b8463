"""Claims beside claims, promotion, cancellation and pause: no job twice, no job lost.

And suspects run alone.
"""

from __future__ import annotations

from tests.support.interleave import Given, Outcome, session, violations
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

CLAIM = "SELECT id, fence FROM livewell.claim_jobs(%({})s, '{{work}}', {}, {})"


def claimed(outcome: Outcome, *names: str) -> list[int]:
    return [row[0] for name in names for row in outcome.answer(name)]


# -- promote, claim, cancel ----------------------------------------------------------------------


async def promote_claim_cancel(queue: QueueSession, queue_dsn: str) -> list[str]:
    """Two delayed jobs are due and one is ready.

    A client cancels one of the delayed and the ready one.
    """

    def prepare() -> Given:
        queue.reset()
        due = queue.enqueue(2, delay_seconds=60)
        queue.rows("UPDATE livewell.job SET run_at = livewell.now() - interval '1 second'")
        ready = queue.enqueue()[0]
        return {"w": queue.register(), "due": due[0], "ready": ready, "ids": [*due, ready]}

    def judge(outcome: Outcome) -> str | None:
        if outcome.errors:
            return f"errors: {outcome.errors}"
        runs = claimed(outcome, "claim")
        for job in outcome.given["ids"]:
            state = queue.state(job)
            if state == "nowhere" or (state == "running") != (job in runs):
                return f"job {job} is {state}, claimed are {runs}"
        for step, job in enumerate((outcome.given["due"], outcome.given["ready"])):
            answer = outcome.answer("cancel", step)[0][0]
            expected = {"cancelled": "cancelled", "requested": "running"}[answer]
            if queue.state(job) != expected:
                return f"cancel of {job} answered {answer}, but it is {queue.state(job)}"
        return None

    return await violations(
        queue_dsn,
        [
            session("promote", "SELECT livewell.promote_jobs(100)"),
            session("claim", CLAIM.format("w", 10, "false")),
            session("cancel", "SELECT livewell.cancel_job(%(due)s)", "SELECT livewell.cancel_job(%(ready)s)"),
        ],
        prepare=prepare,
        judge=judge,
    )


async def test_promotion_claim_and_cancellation_lose_nothing_and_double_nothing(
    queue: QueueSession, queue_dsn: str
) -> None:
    """In all 210 orders each job is in one place, and whoever acted on it was told so."""
    assert await promote_claim_cancel(queue, queue_dsn) == []


async def test_a_cancellation_that_does_not_lock_before_it_looks_breaks(queue: QueueSession, queue_dsn: str) -> None:
    """It takes a job for waiting that is just being claimed, and ends it under its worker."""
    with variant(queue_dsn, "cancel_job", ("WHERE j.id = p_id FOR UPDATE;", "WHERE j.id = p_id;")):
        assert await promote_claim_cancel(queue, queue_dsn) != []


async def test_two_promotions_share_what_is_due(queue: QueueSession, queue_dsn: str) -> None:
    """Neither waits for the other, each job is promoted once, and what was claimed is not made ready again."""

    def prepare() -> Given:
        queue.reset()
        ids = queue.enqueue(3, delay_seconds=60)
        queue.rows("UPDATE livewell.job SET run_at = livewell.now() - interval '1 second'")
        return {"w": queue.register(), "ids": ids}

    def judge(outcome: Outcome) -> str | None:
        promoted = sum(outcome.answer(name)[0][0] for name in "ab")
        runs = claimed(outcome, "claim")
        states = [queue.state(job) for job in outcome.given["ids"]]
        if (
            outcome.errors
            or outcome.waited
            or states.count("delayed") != 3 - promoted
            or states.count("running") != len(runs)
        ):
            return (
                f"{promoted} promoted, {runs} claimed, states {states}, {outcome.waited} waited, errors "
                f"{outcome.errors}"
            )
        return None

    found = await violations(
        queue_dsn,
        [
            session("a", "SELECT livewell.promote_jobs(2)"),
            session("b", "SELECT livewell.promote_jobs(3)"),
            session("claim", CLAIM.format("w", 10, "false")),
        ],
        prepare=prepare,
        judge=judge,
    )
    assert found == []


# -- suspects ------------------------------------------------------------------------------------


def suspect(queue: QueueSession) -> int:
    """A job whose worker died once."""
    job = queue.enqueue()[0]
    worker = queue.register()
    queue.rows("UPDATE livewell.queue SET paused_at = NULL")
    assert [claim.id for claim in queue.claim(worker, 1, empty=True)] == [job]
    queue.rows("DELETE FROM livewell.worker WHERE id = %s", worker)
    assert queue.recover(0)[1] == 1
    return job


def test_a_suspect_goes_only_to_an_empty_worker_and_alone(queue: QueueSession) -> None:
    """A worker that holds anything gets the others.

    An empty one gets the suspect and nothing else.
    """
    job = suspect(queue)
    others = queue.enqueue(3)
    busy, empty = queue.register(), queue.register()

    assert [claim.id for claim in queue.claim(empty, 10, empty=True)] == [job]
    assert [claim.id for claim in queue.claim(busy, 10)] == others


async def test_two_empty_workers_do_not_share_a_suspect(queue: QueueSession, queue_dsn: str) -> None:
    """In every order one has it alone, and the other has the rest."""

    def prepare() -> Given:
        queue.reset()
        job = suspect(queue)
        return {"job": job, "rest": queue.enqueue(2), "a": queue.register(), "b": queue.register()}

    def judge(outcome: Outcome) -> str | None:
        got = sorted((claimed(outcome, "a"), claimed(outcome, "b")), key=len)
        expected = [[outcome.given["job"]], outcome.given["rest"]]
        return None if got == expected and not outcome.waited else f"{got}, {outcome.waited} waited"

    found = await violations(
        queue_dsn,
        [session(name, CLAIM.format(name, 10, "true")) for name in "ab"],
        prepare=prepare,
        judge=judge,
    )
    assert found == []


def poison_beside_innocents(queue: QueueSession) -> tuple[str, list[str]]:
    """One job kills every worker that holds it.

    A fleet of fresh workers claims as real ones do until nothing is left.
    """
    poison = queue.enqueue()[0]
    innocents = queue.enqueue(4)
    undertaker = queue.steady()
    for _ in range(20):
        worker = queue.register()
        held = queue.claim(worker, 5, empty=True)
        if poison in [claim.id for claim in held]:
            queue.expire(worker)
            queue.recover(undertaker)
        elif held:
            queue.finish(*held)
    return queue.state(poison), queue.states(innocents)


def test_a_poison_job_dead_letters_only_itself(queue: QueueSession) -> None:
    """Its neighbours of the first death are suspects once, run alone, and succeed."""
    assert poison_beside_innocents(queue) == ("failed", ["succeeded"] * 4)
    assert queue.rows("SELECT reason, lost, attempt FROM livewell.dead_job") == [("lost", 5, 1)]


def test_without_isolation_the_poison_takes_innocents_with_it(queue: QueueSession, queue_dsn: str) -> None:
    """If suspects are claimed like all others, the neighbours are dead-lettered with it."""
    together = ("AND r.state = 'ready' AND r.lost = 0", "AND r.state = 'ready'")
    with variant(queue_dsn, "claim_jobs", together, ("IF p_empty AND", "IF false AND")):
        _, innocents = poison_beside_innocents(queue)

    assert "failed" in innocents
