"""declare_queue, pause_queue, list_queues, list_jobs and show_job.

Policy, and what people look at.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.support.queue_sql import QueueSession


def test_declaring_again_brings_the_policy_up_to_date_and_leaves_the_pause(queue: QueueSession) -> None:
    """A deployment must not resume what somebody paused."""
    queue.pause()
    queue.declare(attempts=9, base=1, cap=2)

    columns = "attempts, backoff_base_seconds, backoff_cap_seconds, paused_at IS NOT NULL"
    assert queue.rows(f"SELECT {columns} FROM livewell.queue") == [(9, 1, 2, True)]


def test_declaring_the_same_writes_nothing(queue: QueueSession) -> None:
    """A fleet that starts together does not fight over a row."""
    before = queue.rows("SELECT xmin, ctid FROM livewell.queue")
    queue.declare()

    assert queue.rows("SELECT xmin, ctid FROM livewell.queue") == before


@pytest.mark.parametrize(
    "policy",
    [
        {"attempts": 0},
        {"attempts": 101},
        {"base": -1},
        {"base": 10, "cap": 5},
        {"cap": 604801},
        {"queue": "No"},
        {"queue": ""},
        {"queue": "q" * 64},
    ],
    ids=str,
)
def test_a_policy_out_of_bounds_is_refused(queue: QueueSession, policy: dict[str, Any]) -> None:
    """By the table."""
    with pytest.raises(psycopg.errors.CheckViolation):
        queue.declare(**{"queue": "other", **policy})


def test_pausing_twice_keeps_the_first_time_and_an_unknown_queue_is_told(queue: QueueSession) -> None:
    """Since when it is paused is what people ask."""
    queue.freeze()
    paused = queue.now()
    queue.pause()
    queue.advance(60)

    assert [queue.pause(), queue.pause(queue="nowhere")] == [True, False]
    assert queue.column("SELECT paused_at FROM livewell.queue") == [paused]


def test_the_list_of_queues_counts_by_state(queue: QueueSession) -> None:
    """Ready, delayed, held, running, dead; the age of the oldest; what is overdue; who serves it.

    How fast.
    """
    queue.freeze()
    queue.declare("empty")
    worker = queue.register()
    queue.enqueue()
    queue.settle(queue.claim(worker)[0], "refused")
    queue.enqueue()
    queue.claim(worker)
    queue.enqueue(2)
    queue.enqueue(3, delay_seconds=60)
    queue.enqueue()
    queue.rows("UPDATE livewell.job SET state = 'held', held_by = 'g' WHERE id = (SELECT max(id) FROM livewell.job)")
    queue.rows("SELECT livewell.add_stats('{work}', '{task}', '{succeeded}', '{50}', '{1}')")
    queue.advance(121)
    queue.renew(worker)

    columns = (
        "name, ready, delayed, held, running, dead, oldest_ready_seconds, overdue_delayed, workers, done_per_minute"
    )
    assert queue.rows(f"SELECT {columns} FROM livewell.list_queues()") == [
        ("empty", 0, 0, 0, 0, 0, None, 0, 0, 0),
        ("work", 2, 3, 1, 1, 1, 121, 3, 1, 10),
    ]


def test_the_list_of_jobs_is_a_page_by_id(queue: QueueSession) -> None:
    """Filtered by queue and state, continued after the last id."""
    queue.declare("other")
    first, second, third = queue.enqueue(3)
    elsewhere = queue.enqueue(queue="other")[0]
    queue.claim(queue.register(name="w"), 1)
    page = "SELECT id FROM livewell.list_jobs(%s, %s, %s, %s)"

    assert queue.column(page, None, None, None, 2) == [first, second]
    assert queue.column(page, None, None, second, 10) == [third, elsewhere]
    assert queue.column(page, "work", "ready", 0, 10) == [second, third]
    assert queue.column("SELECT worker FROM livewell.list_jobs(NULL, 'running', 0, 10)") == ["w"]


def test_a_job_is_shown_wherever_it_is(queue: QueueSession) -> None:
    """Live, finished, cancelled, dead; and nothing for what never was."""
    done, cancelled, dead, waits = queue.enqueue(4)
    a, b, c = queue.claim(queue.register(), 3)
    queue.finish(a)
    queue.settle(b, "cancelled", error="why")
    queue.settle(c, "refused", error="no")
    shown = [
        queue.rows("SELECT state, error FROM livewell.show_job(%s)", job) for job in (done, cancelled, dead, waits, 1)
    ]

    assert shown == [[("succeeded", None)], [("cancelled", "why")], [("failed", "no")], [("ready", None)], []]


def test_very_many_queues_do_not_hurt_the_state(queue: QueueSession) -> None:
    """The sample was looked through again for each of a thousand queues: 13 s for 100,000 queues with a job each."""
    queue.rows("INSERT INTO livewell.queue (name, created_at) SELECT 'q' || n, now() FROM generate_series(1, 30000) n")
    queue.rows(
        "INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, payload) "
        "SELECT n, n, now(), now(), 'ready', 5, 'q' || n, 'task', '{}' FROM generate_series(1, 30000) n"
    )
    queue.rows("DELETE FROM livewell.state_sample")
    queue.rows("SELECT livewell.state_queue()")
    queue.rows("SET statement_timeout = '1500ms'")
    try:
        state = queue.value("SELECT livewell.state_queue()")
        [found] = queue.value("SELECT livewell.find_queues('q29999', 50)")
    finally:
        queue.rows("RESET statement_timeout")
    assert len(state["queues"]) == 1000
    assert (found["name"], found["workers"]) == ("q29999", 0)
    assert found["oldest_ready_seconds"] >= 0
