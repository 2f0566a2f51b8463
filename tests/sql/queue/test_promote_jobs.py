"""promote_jobs and hasten_job: delayed jobs whose time has come, or is made to come."""

from __future__ import annotations

import pytest

from tests.support.queue_sql import QueueSession


@pytest.fixture(autouse=True)
def frozen(queue: QueueSession) -> None:
    queue.freeze()


def test_what_is_due_becomes_ready_and_the_rest_waits(queue: QueueSession) -> None:
    """To the second."""
    soon, later = queue.enqueue(delay_seconds=10)[0], queue.enqueue(delay_seconds=11)[0]
    queue.advance(10)

    assert queue.promote() == 1
    assert queue.states([soon, later]) == ["ready", "delayed"]


def test_the_rank_counts_from_its_time(queue: QueueSession) -> None:
    """One that waited for its time is not behind what was enqueued after that."""
    delayed = queue.enqueue(delay_seconds=10)[0]
    early = queue.enqueue()[0]
    queue.advance(20)
    late = queue.enqueue()[0]
    queue.promote()

    assert [claim.id for claim in queue.claim(queue.register())] == [early, delayed, late]


def test_the_number_promoted_at_once_is_bounded_oldest_first(queue: QueueSession) -> None:
    """The rest follows at the next turn."""
    third, second, first = (queue.enqueue(delay_seconds=seconds)[0] for seconds in (3, 2, 1))
    queue.advance(5)

    assert queue.promote(2) == 2
    assert queue.states([first, second, third]) == ["ready", "ready", "delayed"]


def test_delayed_jobs_survive_a_paused_queue(queue: QueueSession) -> None:
    """They become ready, and wait there."""
    job = queue.enqueue(delay_seconds=1)[0]
    queue.pause()
    queue.advance(2)

    assert queue.promote() == 1
    assert (queue.state(job), queue.claim(queue.register())) == ("ready", [])


def test_a_delayed_job_can_be_hastened(queue: QueueSession) -> None:
    """Ready now, due now."""
    job = queue.enqueue(delay_seconds=3600)[0]

    assert queue.value("SELECT livewell.hasten_job(%s)", job) is True
    assert queue.job(job, "state::text", "run_at") == ("ready", queue.now())


@pytest.mark.parametrize("state", ["ready", "running", "unknown"])
def test_only_a_delayed_job_can_be_hastened(queue: QueueSession, state: str) -> None:
    """The others are not waiting for a time."""
    job = queue.enqueue()[0] if state != "unknown" else 1
    if state == "running":
        queue.claim(queue.register())

    assert queue.value("SELECT livewell.hasten_job(%s)", job) is False
