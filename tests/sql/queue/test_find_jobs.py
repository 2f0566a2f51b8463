"""find_jobs, read_jobs, count_jobs: every part of the filter, pages both ways, and a look that has an end."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from livewell.db import scratch
from tests.support.plans import PlanRecorder, rows_read, sequential
from tests.support.queue_sql import QueueSession

LOOK = 20_000
MANY = """
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, lane, queue, kind, unique_key, group_key, payload)
SELECT n * 64, n, livewell.now(), livewell.now() - n * interval '1 minute',
    CASE WHEN n %% 100 = 0 THEN 'delayed' ELSE 'ready' END::livewell.job_state, 5, 1, 'work', CASE WHEN n = 49990 THEN 'rare' ELSE 'task' END, 'key ' || n,
    CASE WHEN n %% 10000 = 0 THEN 'few' END, '{}'
FROM generate_series(1, 50000) AS n
"""


def find(
    queue: QueueSession, /, *, after: int = 0, newest: bool = False, limit: int = 50, look: int = LOOK, **wanted: Any
) -> tuple[list[int], int, int | None]:
    """Ids, rows looked at, where to go on."""
    call = "SELECT * FROM livewell.find_jobs(%s::jsonb, %s, %s, %s, %s)"
    return queue.rows(call, json.dumps(wanted), after, newest, limit, look)[0]


def ids(queue: QueueSession, /, **wanted: Any) -> list[int]:
    return find(queue, **wanted)[0]


def test_times_of_dead_letters_are_when_they_died(queue: QueueSession) -> None:
    """As acts on all that match take them: what the list shows is what is redriven.

    Seen failing: it was the time when the job was made.
    """
    queue.enqueue(2)
    old, new = queue.claim(queue.register(), 2)
    for claim in (old, new):
        queue.settle(claim, "refused", error="no")
    queue.rows("UPDATE livewell.dead_job SET created_at = died_at - interval '3 hours'")
    queue.rows("UPDATE livewell.dead_job SET died_at = died_at - interval '2 hours' WHERE id = %s", old.id)

    assert ids(queue, state="failed", since_seconds=3600) == [new.id]
    assert ids(queue, state="failed", until_seconds=3600) == [old.id]
    assert queue.value('SELECT n FROM livewell.count_jobs(\'{"state": "failed", "since_seconds": 3600}\', 10, 10)') == 1


def test_every_part_of_the_filter(queue: QueueSession) -> None:
    """Queue, task, state, group, key and batch, alone and together."""
    queue.declare("other")
    worker = queue.register()
    [running] = queue.enqueue(kind="a")
    queue.claim(worker)
    [ready] = queue.enqueue(kind="b", unique_key="k", group_key="g")
    [delayed] = queue.enqueue(kind="b", delay_seconds=60)
    [elsewhere] = queue.enqueue(kind="b", queue="other", unique_key="k", group_key="g")
    queue.rows("UPDATE livewell.job SET batch_id = 7 WHERE id = %s", delayed)

    assert ids(queue) == [running, ready, delayed, elsewhere]
    assert ids(queue, queue="other") == [elsewhere]
    assert ids(queue, task="a") == [running]
    assert [ids(queue, state=one) for one in ("running", "ready", "delayed", "held")] == [
        [running],
        [ready, elsewhere],
        [delayed],
        [],
    ]
    assert ids(queue, group="g") == [ready, elsewhere]
    assert ids(queue, group="g", queue="work") == [ready]
    assert ids(queue, key="k") == [ready, elsewhere]
    assert ids(queue, key="k", queue="other", state="ready", task="b", group="g") == [elsewhere]
    assert ids(queue, key="k", state="delayed") == []
    assert ids(queue, batch=7) == [delayed]
    assert ids(queue, queue="nowhere", key="k") == []


def test_when_a_job_was_made(queue: QueueSession) -> None:
    """From since on, before until; as an instant or as an age by the database's clock."""
    queue.freeze()
    [old] = queue.enqueue()
    queue.advance(3600)
    [new] = queue.enqueue()
    now = queue.now()

    assert ids(queue, since=now.isoformat()) == [new]
    assert ids(queue, until=now.isoformat()) == [old]
    assert ids(queue, since_seconds=60) == [new]
    assert ids(queue, until_seconds=60) == [old]
    assert ids(queue, since_seconds=7200, until_seconds=3600) == []


def test_ended_jobs_are_found_where_they_are(queue: QueueSession) -> None:
    """Succeeded and cancelled in the history, failed among the dead letters."""
    worker = queue.register()
    queue.enqueue(3, kind="a")
    first, second, third = queue.claim(worker)
    queue.settle(first, "succeeded")
    queue.settle(second, "refused")
    queue.settle(third, "cancelled")

    for state, claim in (("succeeded", first), ("failed", second), ("cancelled", third)):
        assert ids(queue, state=state) == [claim.id]
        assert ids(queue, state=state, queue="work", task="a", since_seconds=60) == [claim.id]
        assert ids(queue, state=state, task="b") == []
        [row] = queue.rows(
            "SELECT id, state, finished_at IS NOT NULL FROM livewell.read_jobs(%s, %s)", [claim.id], state
        )
        assert row == (claim.id, state, True)
    assert ids(queue) == []


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("wanted", [{}, {"state": "ready"}, {"key": "one"}], ids=str)
def test_pages_hold_every_job_once(queue: QueueSession, newest: bool, wanted: dict[str, Any]) -> None:
    """In both directions, by the primary key or by another index; the last page says that it is the last."""
    made = queue.enqueue(6) + queue.enqueue(unique_key="one")
    expected = made[-1:] if "key" in wanted else made
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        found, _, after = find(queue, after=after, newest=newest, limit=3, **wanted)
        seen += found
    assert seen == (expected[::-1] if newest else expected)


def test_a_look_has_an_end_and_says_where(queue: QueueSession) -> None:
    """What matches rarely is not searched for through the whole table; nothing is skipped between two looks."""
    made = queue.enqueue(10)
    [rare] = queue.enqueue(kind="rare")

    assert find(queue, task="rare", look=4) == ([], 4, made[3])
    assert find(queue, task="rare", look=4, after=made[3]) == ([], 4, made[7])
    assert find(queue, task="rare", look=4, after=made[7]) == ([rare], 3, None)


def test_a_count_is_exact_up_to_its_limit(queue: QueueSession) -> None:
    """Beyond it, and beyond the look, it says that it is not all."""
    queue.enqueue(7)
    count = "SELECT * FROM livewell.count_jobs(%s::jsonb, %s, %s)"

    assert queue.rows(count, "{}", 10, LOOK) == [(7, 7, True)]
    assert queue.rows(count, "{}", 7, LOOK) == [(7, 7, True)]
    assert queue.rows(count, "{}", 5, LOOK) == [(5, 5, False)]
    assert queue.rows(count, '{"task": "none"}', 10, 3) == [(0, 3, False)]


@pytest.fixture(scope="module")
def many(livewell_server: str, livewell_template: str) -> Iterator[PlanRecorder]:
    """Fifty thousand jobs, without statistics."""
    name = f"livewell_test_{secrets.token_hex(6)}"
    dsn = scratch.clone(livewell_server, livewell_template, name)
    with QueueSession(dsn) as session:
        session.rows("ALTER TABLE livewell.job SET (autovacuum_enabled = off)")
        session.declare()
        session.rows(MANY.replace("%%", "%"))
        yield PlanRecorder(session)
    scratch.drop(livewell_server, name)


@pytest.mark.parametrize(
    ("wanted", "rows", "read"),
    [
        ({}, 50, 60),
        ({"task": "rare"}, 0, LOOK + 1),
        ({"task": "rare", "newest": True}, 1, LOOK + 1),
        ({"key": "key 49000"}, 1, 2),
        ({"queue": "work", "group": "few"}, 5, 5),
        ({"state": "delayed", "task": "task"}, 50, 501),
        ({"state": "running"}, 0, 0),
        ({"state": "ready"}, 50, LOOK + 1),
        ({"state": "held"}, 0, LOOK + 1),
        ({"since_seconds": 570}, 9, LOOK + 1),
    ],
    ids=str,
)
def test_no_filter_reads_the_whole_table(many: PlanRecorder, wanted: dict[str, Any], rows: int, read: int) -> None:
    """Each scan reads what an index gives it, and never more than the look."""
    newest = wanted.pop("newest", False)
    call = "SELECT * FROM livewell.find_jobs(%s::jsonb, NULL, %s, 50, %s)"
    for _ in range(7):
        plans = many.plans(call, json.dumps(wanted), newest, LOOK)
    assert "job" not in sequential(plans)
    assert rows_read(plans, "job") <= read
    assert len(many.session.value(call, json.dumps(wanted), newest, LOOK)) == rows
