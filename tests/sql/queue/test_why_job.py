"""Q15: for each reason a job may have not to run, the reason is caused and `why` says it."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

import livewell
from livewell.queue.why import _WORDS, Why
from tests.support.queue_sql import QueueSession

FUNCTION = Path(livewell.__file__).parent / "queue" / "sql" / "functions" / "why" / "why_job.sql"


def why(queue: QueueSession, job: int) -> Why:
    answer = Why(job, *queue.rows("SELECT * FROM livewell.why_job(%s)", job)[0])
    assert "None" not in answer.words
    return answer


@pytest.fixture
def working(queue: QueueSession) -> QueueSession:
    """With a worker that has the task."""
    queue.freeze()
    queue.rows(
        "INSERT INTO livewell.worker (id, started_at, renewed_at, expires_at, steady_since, lease, slots, "
        "queues, kinds, name, version)"
        " SELECT 1, n, n, n + interval '1 day', n, '45 s', 1, ARRAY['work', 'more'], ARRAY['task'], 'host:1', "
        "'' FROM livewell.now() AS n"
    )
    return queue


def test_the_next(working: QueueSession) -> None:
    """Nothing stands in its way."""
    job = working.enqueue()[0]
    assert why(working, job).reason == "next"


def test_behind_others(working: QueueSession) -> None:
    """So many of its queue go first."""
    jobs = working.enqueue(3)
    working.enqueue(1, lane=0)
    answer = why(working, jobs[-1])
    assert (answer.reason, answer.n) == ("behind", 3)


def test_running(working: QueueSession) -> None:
    """Where, and since when."""
    job = working.enqueue()[0]
    working.claim(1)
    answer = why(working, job)
    assert (answer.reason, answer.name, answer.since) == ("running", "host:1", working.now())


def test_ended(working: QueueSession) -> None:
    """Succeeded, cancelled, dead, or never there."""
    done, dead, cancelled = working.enqueue(3)
    first, second = working.claim(1, 2)
    working.finish(first)
    working.settle(second, "refused", reason="refused")
    working.cancel(cancelled)
    assert [why(working, job).reason for job in (done, dead, cancelled, 12345)] == [
        "succeeded",
        "dead",
        "cancelled",
        "unknown",
    ]


def test_delayed(working: QueueSession) -> None:
    """Until when."""
    job = working.enqueue(1, delay_seconds=90)[0]
    answer = why(working, job)
    assert (answer.reason, answer.wait_seconds) == ("delayed", 90)
    assert "1 min 30 s" in answer.words


def test_held_behind_a_key(working: QueueSession) -> None:
    """Which job has it."""
    first = working.enqueue(1, unique_key="k")[0]
    [second] = working.ids(1)
    working.enqueue_given([{"id": second, "unique_key": "k", "policy": "again"}])
    answer = why(working, second)
    assert (answer.reason, answer.other_id, answer.name) == ("held_key", first, "k")


def test_held_behind_a_group(working: QueueSession) -> None:
    """How many of it run, and which is the oldest."""
    working.declare(group_limit=2)
    jobs = working.enqueue(3, group_key="ann")
    working.claim_limited(1)
    answer = why(working, jobs[2])
    assert (answer.reason, answer.n, answer.of_limit, answer.other_id, answer.name) == (
        "held_group",
        2,
        2,
        jobs[0],
        "ann",
    )


def test_paused(working: QueueSession) -> None:
    """Since when."""
    job = working.enqueue()[0]
    working.pause()
    assert (why(working, job).reason, why(working, job).since) == ("paused", working.now())


def test_nobody_works_the_queue(queue: QueueSession) -> None:
    """Or only workers whose lease is over."""
    job = queue.enqueue()[0]
    assert why(queue, job).reason == "no_worker"
    queue.expire(queue.register())
    assert why(queue, job).reason == "no_worker"


def test_nobody_has_the_task(working: QueueSession) -> None:
    """Workers are there, but their code is another."""
    job = working.enqueue(1, kind="newer")[0]
    assert (why(working, job).reason, why(working, job).name) == ("no_task", "newer")


def test_it_was_lost_with_a_worker(working: QueueSession) -> None:
    """It waits for an empty one."""
    job = working.enqueue()[0]
    working.rows("UPDATE livewell.job SET lost = 2")
    answer = why(working, job)
    assert (answer.reason, answer.n, answer.of_limit) == ("suspect", 2, 5)


def test_the_queue_is_full(working: QueueSession) -> None:
    """n of so many run."""
    working.declare(concurrency=2)
    jobs = working.enqueue(3)
    working.claim_limited(1)
    answer = why(working, jobs[2])
    assert (answer.reason, answer.n, answer.of_limit) == ("queue_limit", 2, 2)


def test_the_limiter_is_full(working: QueueSession) -> None:
    """Calls of all its queues count."""
    working.limiter(concurrency=2)
    working.declare("more", limiter="api")
    working.declare(limiter="api")
    working.enqueue(2, queue="more")
    job = working.enqueue()[0]
    working.claim_limited(1, queue="more")
    answer = why(working, job)
    assert (answer.reason, answer.n, answer.of_limit, answer.name) == ("concurrency", 2, 2, "api")


def test_its_key_is_in_use_under_the_limiter(working: QueueSession) -> None:
    """In another queue."""
    working.limiter(per_key=1)
    working.declare("more", limiter="api")
    working.declare(limiter="api")
    other = working.enqueue(1, queue="more", group_key="AAPL")[0]
    job = working.enqueue(1, group_key="AAPL")[0]
    working.claim_limited(1, queue="more")
    answer = why(working, job)
    assert (answer.reason, answer.n, answer.of_limit, answer.other_id) == ("key_limit", 1, 1, other)


def test_the_rate(working: QueueSession) -> None:
    """When the next call may go."""
    working.limiter(rate_calls=60, rate_seconds=60, burst=1, reserve=0)
    working.declare(limiter="api")
    jobs = working.enqueue(2)
    working.claim_limited(1)
    answer = why(working, jobs[1])
    assert answer.reason == "rate"
    assert answer.wait_seconds == pytest.approx(1, abs=0.01)


def test_the_reserve_is_not_for_the_background(working: QueueSession) -> None:
    """The same limiter lets people through."""
    working.limiter(rate_calls=10, rate_seconds=60, burst=10, reserve=0.5)
    working.declare(limiter="api")
    background = working.enqueue(6, lane=1)
    working.claim_limited(1)
    urgent = working.enqueue(1, lane=0)[0]
    assert why(working, background[5]).reason == "rate"
    assert why(working, urgent).reason == "next"


def test_the_budget(working: QueueSession) -> None:
    """When there is room again."""
    working.limiter(budget_units=100, budget_unit="bytes", budget_seconds=86400, estimate_units=90)
    working.declare(limiter="api")
    jobs = working.enqueue(2, lane=0)
    [claim] = working.claim_limited(1)
    working.end(claim, used=90)
    answer = why(working, jobs[1])
    assert answer.reason == "budget"
    assert 86400 - 3600 < (answer.wait_seconds or 0) <= 86400 + 3600


def test_the_breaker_and_its_probe(working: QueueSession) -> None:
    """Until when it is open; then that somebody is trying."""
    working.limiter(breaker_failures=1, breaker_in_row=1, breaker_share=0)
    working.declare(limiter="api", attempts=100)
    job = working.enqueue(3)[2]
    [claim] = working.claim_limited(1, 1)
    working.end(claim, "retry", ended="upstream")
    answer = why(working, job)
    assert (answer.reason, answer.wait_seconds) == ("breaker", 60)
    working.advance(61)
    working.claim_limited(1, 1)
    assert why(working, job).reason == "probe"


def test_the_upstream_asked_for_silence(working: QueueSession) -> None:
    """For so long."""
    working.limiter(rate_calls=60, rate_seconds=60)
    working.declare(limiter="api")
    job = working.enqueue()[0]
    working.value("SELECT livewell.observe_limiter('api', '', NULL, NULL, NULL, 30)")
    assert (why(working, job).reason, why(working, job).wait_seconds) == ("upstream", 30)


def test_every_reason_has_words() -> None:
    """What the function's header lists, and nothing else."""
    lines = re.findall(r"^-- {16}(\S.*?)(?: \(\w+\))?$", FUNCTION.read_text(), re.MULTILINE)
    listed = {word for line in lines for word in line.split(", ")}
    assert listed == set(_WORDS)
    for words in _WORDS.values():
        fields = {field for _, field, _, _ in string.Formatter().parse(words) if field}
        assert fields <= {"id", "n", "limit", "other", "name", "since", "wait", "why"}
