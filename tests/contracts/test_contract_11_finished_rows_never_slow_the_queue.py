"""Contract 11: finished rows never slow the queue.

Broken once, and kept broken below: a claim that looks into history, and finished rows kept in the
live table. Judged by what the plans touch, not by a stopwatch.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from livewell.db import scratch
from tests.support.plans import Plan, PlanRecorder, indexes, relations, rows_read, sequential
from tests.support.queue_sql import QueueSession
from tests.support.variants import variant

HISTORY_ROWS = 200_000
DEAD_ROWS = 20_000
CLAIM = "SELECT * FROM livewell.claim_jobs(%s, '{work}', 50)"


@pytest.fixture(scope="module")
def full_dsn(livewell_server: str, livewell_template: str) -> Iterator[str]:
    """A database with much history, many dead letters and few live jobs."""
    name = f"livewell_test_{secrets.token_hex(6)}"
    dsn = scratch.clone(livewell_server, livewell_template, name)
    with QueueSession(dsn) as queue:
        queue.declare()
        queue.rows(
            "INSERT INTO livewell.job_history (id, fence, created_at, finished_at, attempt, outcome, queue, kind) "
            "SELECT -n, n, livewell.now(), livewell.now(), 1, 'succeeded', 'work', 'task' FROM "
            "generate_series(1, %s) AS n",
            HISTORY_ROWS,
        )
        queue.rows(
            "INSERT INTO livewell.dead_job (id, created_at, died_at, attempt, max_attempts, lost, priority, "
            "lane, queue, kind, reason, payload) "
            "SELECT -n, livewell.now(), livewell.now(), 5, 5, 0, 0, 1, 'work', 'task', 'attempts', '{}' FROM "
            "generate_series(1, %s) AS n",
            DEAD_ROWS,
        )
        queue.rows("ANALYZE livewell.job_history, livewell.dead_job")
    yield dsn
    scratch.drop(livewell_server, name)


def claim_plans(dsn: str) -> list[Plan]:
    """What a claim of fifty touches."""
    with QueueSession(dsn) as queue:
        queue.rows("DELETE FROM livewell.job")
        queue.enqueue(200)
        return PlanRecorder(queue).plans(CLAIM, queue.register())


def test_a_claim_touches_only_the_live_table_and_its_ready_index(full_dsn: str) -> None:
    """No partition of history, no dead letter, and no more rows than it takes."""
    plans = claim_plans(full_dsn)

    assert relations(plans) == {"job", "queue", "worker"}
    assert {"job_ready_idx", "job_pkey"} <= indexes(plans)
    assert sequential(plans) == set()
    assert rows_read(plans, "job") == 50


def test_a_claim_that_looks_into_history_is_noticed(full_dsn: str) -> None:
    """Broken on purpose."""
    look = (
        "AND r.state = 'ready' AND r.lost = 0",
        "AND r.state = 'ready' AND r.lost = 0 AND NOT EXISTS (SELECT FROM livewell.job_history h WHERE h.id = r.id)",
    )
    with variant(full_dsn, "claim_jobs", look):
        assert [name for name in relations(claim_plans(full_dsn)) if name.startswith("job_history")] != []


def test_a_finish_writes_history_without_reading_it(full_dsn: str) -> None:
    """It inserts; it searches nothing there."""
    with QueueSession(full_dsn) as queue:
        queue.rows("DELETE FROM livewell.job")
        queue.enqueue(50)
        claims = queue.claim(queue.register())
        plans = PlanRecorder(queue).plans(
            "SELECT * FROM livewell.finish_jobs(%s, %s, %s)",
            claims[0].worker,
            [claim.id for claim in claims],
            [claim.fence for claim in claims],
        )

    scans = {node.relation for plan in plans for node in plan.nodes if "Scan" in node.kind and node.relation}
    assert scans == {"job"}
    assert indexes(plans) == {"job_pkey"}


def test_a_finished_job_leaves_the_live_table_in_the_transaction_that_finishes_it(full_dsn: str) -> None:
    """The live table is as small as the work that waits."""
    with QueueSession(full_dsn) as queue:
        queue.rows("DELETE FROM livewell.job")
        queue.enqueue(10)
        queue.finish(*queue.claim(queue.register()))

        assert queue.value("SELECT count(*) FROM livewell.job") == 0


def test_recovery_promotion_and_heartbeat_do_not_touch_history_either(full_dsn: str) -> None:
    """What runs every second for every worker."""
    with QueueSession(full_dsn) as queue:
        queue.rows("DELETE FROM livewell.job")
        worker = queue.register()
        queue.enqueue(10)
        queue.claim(worker)
        queue.enqueue(10, delay_seconds=60)
        recorder = PlanRecorder(queue)
        plans = [
            *recorder.plans("SELECT * FROM livewell.recover_jobs(%s, 100, 0)", worker),
            *recorder.plans("SELECT livewell.promote_jobs(100)"),
            *recorder.plans("SELECT * FROM livewell.renew_worker(%s, '{}', '{}', '{}')", worker),
            *recorder.plans("SELECT livewell.reconcile_jobs(%s, '{}', 0)", worker),
        ]

    assert relations(plans) <= {"job", "queue", "worker", "fence_seq"}
