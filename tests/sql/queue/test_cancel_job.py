"""cancel_job: at once while it waits, by asking while it runs."""

from __future__ import annotations

import pytest

from tests.support.queue_sql import QueueSession


@pytest.mark.parametrize("delay", [0, 60], ids=["ready", "delayed"])
def test_a_waiting_job_is_cancelled_at_once(queue: QueueSession, delay: int) -> None:
    """It is history, and its key is free."""
    job = queue.enqueue(delay_seconds=delay, unique_key="k")[0]

    assert queue.cancel(job) == "cancelled"
    assert queue.rows("SELECT outcome::text, note, attempt FROM livewell.job_history") == [
        ("cancelled", "cancelled while it waited", 0)
    ]
    assert len(queue.enqueue(unique_key="k")) == 1


def test_a_running_job_is_asked(queue: QueueSession) -> None:
    """It goes on until its worker stops it; asking twice is the same."""
    job = queue.enqueue()[0]
    claim = queue.claim(queue.register())[0]

    assert [queue.cancel(job), queue.cancel(job)] == ["requested", "requested"]
    assert queue.job(job, "state::text", "cancel_requested", "fence") == ("running", True, claim.fence)


@pytest.mark.parametrize("end", ["succeeded", "cancelled", "failed"])
def test_a_finished_job_cannot_be_cancelled(queue: QueueSession, end: str) -> None:
    """Too late, whatever its end was."""
    job = queue.enqueue()[0]
    claim = queue.claim(queue.register())[0]
    if end == "succeeded":
        queue.finish(claim)
    else:
        queue.settle(claim, "cancelled" if end == "cancelled" else "refused")

    assert queue.cancel(job) == "finished"
    assert queue.state(job) == end


def test_an_unknown_job_is_unknown(queue: QueueSession) -> None:
    """And nothing happens."""
    assert queue.cancel(1) == "unknown"
