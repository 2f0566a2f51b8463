"""settle_jobs, through its callers: where each outcome leads, and what is counted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.queue_sql import Claim, QueueSession


@pytest.fixture
def claim(queue: QueueSession) -> Claim:
    """One running job, its worker, and a clock that stands still."""
    queue.freeze()
    queue.enqueue(unique_key="k", payload={"a": 1}, group_key="g", priority=3)
    return queue.claim(queue.register())[0]


def test_a_retry_waits_for_the_back_off_and_keeps_its_attempt(queue: QueueSession, claim: Claim) -> None:
    """Delayed, nobody's, with the error."""
    queue.settle(claim, "retry", error="boom")

    row = queue.job(claim.id, "state::text", "worker", "started_at", "deadline_at", "attempt", "last_error")
    assert row == ("delayed", None, None, None, 1, "boom")


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 60), (9, 60)])
def test_the_back_off_doubles_up_to_the_cap_with_a_fifth_of_jitter(
    queue: QueueSession, attempt: int, seconds: float
) -> None:
    """Base 10 s, cap 60 s."""
    queue.declare(base=10, cap=60)
    queue.freeze()
    queue.enqueue(40, max_attempts=10)
    queue.rows("UPDATE livewell.job SET attempt = %s", attempt - 1)
    for claim in queue.claim(queue.register()):
        queue.settle(claim, "retry")

    delays = queue.column("SELECT extract(epoch FROM run_at - livewell.now())::float8 / %s FROM livewell.job", seconds)
    assert 0.8 <= min(delays) < 0.95
    assert 1.05 < max(delays) <= 1.2


@pytest.mark.parametrize(("asked", "expected"), [(7.5, 7.5), (0, 0), (-5, 0)])
def test_a_delay_that_was_asked_for_is_kept_exactly(
    queue: QueueSession, claim: Claim, asked: float, expected: float
) -> None:
    """No jitter; zero or less means at once."""
    queue.settle(claim, "retry", delay_seconds=asked)

    state = "delayed" if expected else "ready"
    assert queue.job(claim.id, "state::text", "run_at") == (state, queue.now() + timedelta(seconds=expected))


def test_the_last_attempt_is_a_dead_letter(queue: QueueSession) -> None:
    """With all that is needed to look at it and to send it again."""
    queue.freeze()
    job = queue.enqueue(
        kind="mail",
        payload={"a": 1},
        unique_key="u",
        group_key="g",
        call_key="c",
        lane=0,
        priority=2,
        max_attempts=1,
        trace="t",
    )[0]
    created = queue.now()
    queue.advance(5)
    queue.settle(queue.claim(queue.register())[0], "retry", error="boom")

    columns = (
        "queue",
        "kind",
        "payload",
        "unique_key",
        "group_key",
        "call_key",
        "lane",
        "priority",
        "trace",
        "attempt",
        "max_attempts",
        "lost",
    )
    assert queue.dead(job, *columns) == ("work", "mail", {"a": 1}, "u", "g", "c", 0, 2, "t", 1, 1, 0)
    assert queue.dead(job, "reason", "error", "created_at", "died_at") == ("attempts", "boom", created, queue.now())
    assert queue.column("SELECT id FROM livewell.job UNION ALL SELECT id FROM livewell.job_history") == []


@pytest.mark.parametrize(("given", "reason"), [(None, "refused"), ("payload", "payload"), ("refused", "refused")])
def test_a_refusal_is_a_dead_letter_at_once(queue: QueueSession, claim: Claim, given: str | None, reason: str) -> None:
    """However many attempts are left."""
    queue.settle(claim, "refused", reason=given, error="no")

    assert queue.dead(claim.id, "reason", "error", "attempt") == (reason, "no", 1)


def test_a_release_gives_the_attempt_back(queue: QueueSession, claim: Claim) -> None:
    """Ready at once, nothing lost."""
    queue.settle(claim, "released", error="deadlock")

    assert queue.job(claim.id, "state::text", "attempt", "lost", "last_error") == ("ready", 0, 0, "deadlock")


def test_a_release_may_wait(queue: QueueSession, claim: Claim) -> None:
    """Not its fault, but not now either."""
    queue.settle(claim, "released", delay_seconds=30)

    assert queue.job(claim.id, "state::text", "attempt") == ("delayed", 0)


def test_a_return_gets_a_new_rank(queue: QueueSession, claim: Claim) -> None:
    """Its age counts from now, so it does not overtake what waited meanwhile."""
    queue.advance(300)
    waited = queue.enqueue(priority=3)[0]
    queue.advance(1)
    queue.settle(claim, "released")

    assert [one.id for one in queue.claim(claim.worker)] == [waited, claim.id]


def test_a_cancellation_is_kept_in_history(queue: QueueSession, claim: Claim) -> None:
    """With the note, and not as a success."""
    queue.settle(claim, "cancelled", error="no longer needed")

    assert queue.rows("SELECT id, outcome::text, note, fence FROM livewell.job_history") == [
        (claim.id, "cancelled", "no longer needed", claim.fence)
    ]


@pytest.mark.parametrize(("outcome", "end"), [("retry", "cancelled"), ("released", "cancelled"), ("refused", "failed")])
def test_a_cancellation_asked_for_wins_over_running_again(
    queue: QueueSession, claim: Claim, outcome: str, end: str
) -> None:
    """But a refusal is still told."""
    queue.cancel(claim.id)
    queue.settle(claim, outcome)

    assert queue.state(claim.id) == end


def test_progress_starts_again_with_the_next_run(queue: QueueSession, claim: Claim) -> None:
    """The new run has done nothing yet."""
    queue.rows("SELECT livewell.report_progress(%s, %s, %s, '{50}', '{half}')", claim.worker, [claim.id], [claim.fence])
    queue.settle(claim, "released")

    assert queue.job(claim.id, "progress", "progress_note") == (0, None)


def test_a_job_that_runs_again_keeps_its_key(queue: QueueSession, claim: Claim) -> None:
    """Delayed for its retry it is still the one live job of that key."""
    queue.settle(claim, "retry")
    new = queue.ids(1)[0]

    assert queue.enqueue_given([{"id": new, "unique_key": "k"}]) == [(new, "merged", claim.id)]


def test_an_error_is_cut(queue: QueueSession, claim: Claim) -> None:
    """Four thousand characters are enough."""
    queue.settle(claim, "retry", error="é" * 5000)

    assert queue.job(claim.id, "length(last_error)") == (4000,)


def test_without_a_new_error_the_last_one_stays(queue: QueueSession, claim: Claim) -> None:
    """The reason of the last failure is not lost by a release."""
    queue.settle(claim, "retry", error="boom", delay_seconds=0)
    queue.settle(queue.claim(claim.worker)[0], "released")

    assert queue.job(claim.id, "last_error") == ("boom",)
