"""How a run ended, where the job's end is committed already."""

from __future__ import annotations

from typing import Any, cast

import pytest
import structlog.testing

from livewell.model import Blame, Claimed, Failed, FinishedElsewhere, Permit, Released, RunEnd, Succeeded
from livewell.queue.failures import FailureLog
from livewell.queue.job import Job
from livewell.queue.outcomes import end_of, results, seen_in, speak_as_one

FAILED = Failed("503", blame=Blame.UPSTREAM)


def job(fence: int = 1) -> Job:
    claimed = Claimed(fence, fence, 1, 4, 0, 0, 0, "refresh.fmp", "livewell.refresh", "{}", None, None, None)
    return Job(claimed, 7, cast("Any", None), Permit(1, None, "main", None))


@pytest.mark.parametrize("outcome", [Succeeded(), FAILED, Released("away"), None], ids=repr)
def test_a_job_that_its_own_transaction_ended_is_finished_elsewhere(outcome: RunEnd) -> None:
    """Whatever its handler did after that; a run without such a transaction ends as it ended."""
    plain, ended = job(), job()
    ended.finished = True

    assert end_of(plain, outcome) == outcome
    assert end_of(ended, outcome) == FinishedElsewhere(seen_in(outcome) or Succeeded())
    assert end_of(ended, FinishedElsewhere()) == FinishedElsewhere()


def test_a_call_whose_jobs_are_finished_elsewhere_says_nothing_more() -> None:
    """The store has said how it went."""
    jobs = [job(1), job(2)]
    speak_as_one(jobs, [FinishedElsewhere(), FinishedElsewhere(FAILED)])

    assert jobs[0].call_ended is None


def test_a_call_of_which_one_job_was_lost_says_how_it_went() -> None:
    """What it used is booked by the late report, and one good answer makes it a good call."""
    jobs = [job(1), job(2)]
    speak_as_one(jobs, [None, FinishedElsewhere()])

    assert jobs[0].call_ended == "ok"
    assert '"ended": "ok"' in (results([(jobs[0], Released("lost"))])[2] or "")


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (FinishedElsewhere(), []),
        (FinishedElsewhere(Failed("rejected")), []),
        (FinishedElsewhere(Failed("after it", traceback="Traceback")), ["job failed"]),
        (Failed("rejected"), ["job failed"]),
    ],
    ids=repr,
)
def test_only_a_failure_after_the_end_is_told(end: RunEnd, told: list[str]) -> None:
    """Its handler has said the rest itself; and nobody is told that the job is tried again."""
    with structlog.testing.capture_logs() as logs:
        FailureLog().tell(job(), end)

    assert [line["event"] for line in logs] == told
    if isinstance(end, FinishedElsewhere):
        assert all(str(line["next"]).startswith("nothing: ") for line in logs)
