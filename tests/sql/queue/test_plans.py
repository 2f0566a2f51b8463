"""F-B17: every hot function uses its named index, whatever the statistics say.

Of an empty table, fresh, or stale by a factor of twenty.

Each call is made seven times, because plpgsql changes to a generic plan after five. Read from
auto_explain, as EXPLAIN does not look into functions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from livewell.db import scratch
from tests.support.plans import Plan, PlanRecorder, indexes, rows_read, sequential
from tests.support.queue_sql import QUEUE, Claim, QueueSession, document

TIMES = 7
BATCH = 20

FILL = """
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, lane, queue, kind, unique_key, payload, lost)
SELECT n * 64, n, livewell.now() + CASE WHEN n %% 10 < 2 THEN interval '1 hour' ELSE interval '0' END, livewell.now(),
       CASE WHEN n %% 10 < 2 THEN 'delayed' ELSE 'ready' END::livewell.job_state, 5, 1, CASE WHEN n %% 10 = 9 THEN 'other' ELSE 'work' END, 'task',
       CASE WHEN n %% 3 = 0 THEN 'key ' || n END, '{}', CASE WHEN n %% 5000 = 3 THEN 1 ELSE 0 END
FROM generate_series(%s::int, %s::int) AS n
"""

# A full group, and jobs without one; ids between those above.
FILL_LIMITED = """
INSERT INTO livewell.job (id, rank, run_at, created_at, state, held_by, max_attempts, lane, queue, kind, group_key, payload)
SELECT n * 64 + 1, n, livewell.now(), livewell.now(), CASE WHEN n <= 500 THEN 'held' ELSE 'ready' END::livewell.job_state, CASE WHEN n <= 500 THEN 'g'::"char" END, 5, 1, 'limited', 'task',
       CASE WHEN n <= 500 THEN 'full' END, '{}'
FROM generate_series(1, 1000) AS n
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """How many rows, and what the planner was told before and after they came."""

    name: str
    rows: int
    analyze_at: tuple[int, ...]  # ANALYZE when the table has so many rows


CONDITIONS = [
    Condition("statistics of an empty table, 10k rows", 10_000, (0,)),
    Condition("fresh statistics, 10k rows", 10_000, (10_000,)),
    Condition("statistics of 10k, 200k rows", 200_000, (10_000,)),
    Condition("fresh statistics, 200k rows", 200_000, (200_000,)),
]


@dataclass(frozen=True, slots=True)
class Filled:
    """A database under one condition, and a worker that holds some jobs."""

    dsn: str
    session: QueueSession
    recorder: PlanRecorder
    worker: int


@pytest.fixture(scope="module", params=CONDITIONS, ids=lambda condition: condition.name)
def filled(request: pytest.FixtureRequest, livewell_server: str, livewell_template: str) -> Iterator[Filled]:
    condition: Condition = request.param
    name = f"livewell_test_{secrets.token_hex(6)}"
    dsn = scratch.clone(livewell_server, livewell_template, name)
    with QueueSession(dsn) as session:
        session.rows(
            "ALTER TABLE livewell.job SET (autovacuum_enabled = off)"
        )  # it would mend the statistics we want to be wrong
        session.declare()
        session.declare("other")
        done = 0
        for size in sorted({*condition.analyze_at, condition.rows}):
            session.rows(FILL, done + 1, size)
            done = size
            if size in condition.analyze_at:
                session.rows("ANALYZE livewell.job")
        session.rows("SELECT setval('livewell.job_id_seq', %s)", (condition.rows + 1) * 64)
        session.declare("limited", group_limit=1)
        session.declare("idle", group_limit=1)
        session.rows(FILL_LIMITED)
        workers = [session.register() for _ in range(8)]
        for worker in workers:
            session.claim(worker, 200)
        yield Filled(dsn, session, PlanRecorder(session), workers[3])
    scratch.drop(livewell_server, name)


def held(filled: Filled) -> list[Claim]:
    """Jobs of the worker that can be ended."""
    return filled.session.claim(filled.worker, BATCH)


def arrays(claims: list[Claim]) -> tuple[list[int], list[int]]:
    return [claim.id for claim in claims], [claim.fence for claim in claims]


def claim(filled: Filled) -> list[Plan]:
    return filled.recorder.plans("SELECT * FROM livewell.claim_jobs(%s, '{other,work}', %s)", filled.worker, BATCH)


def claim_suspect(filled: Filled) -> list[Plan]:
    filled.session.rows(
        "UPDATE livewell.job SET lost = 1 WHERE id = (SELECT max(id) FROM livewell.job WHERE state = 'ready' "
        "AND lost = 0)"
    )
    return filled.recorder.plans("SELECT * FROM livewell.claim_jobs(%s, '{work}', %s, true)", filled.worker, BATCH)


def claim_limited(filled: Filled) -> list[Plan]:
    return filled.recorder.plans("SELECT * FROM livewell.claim_limited(%s, 'limited', %s)", filled.worker, BATCH)


def claim_nothing(filled: Filled) -> list[Plan]:
    return filled.recorder.plans("SELECT * FROM livewell.claim_limited(%s, 'idle', %s)", filled.worker, BATCH)


def finish(filled: Filled) -> list[Plan]:
    ids, fences = arrays(held(filled))
    return filled.recorder.plans("SELECT * FROM livewell.finish_jobs(%s, %s, %s)", filled.worker, ids, fences)


def settle(filled: Filled) -> list[Plan]:
    others = [f'{{"id": {c.id}, "fence": {c.fence}, "outcome": "retry"}}' for c in held(filled)]
    return filled.recorder.plans(
        "SELECT * FROM livewell.finish_jobs(%s, '{}', '{}', %s::jsonb)", filled.worker, f"[{','.join(others)}]"
    )


def renew(filled: Filled) -> list[Plan]:
    ids, fences = arrays(held(filled))
    return filled.recorder.plans(
        "SELECT * FROM livewell.renew_worker(%s, %s, %s, %s)", filled.worker, ids, fences, [60.0] * len(ids)
    )


def progress(filled: Filled) -> list[Plan]:
    ids, fences = arrays(held(filled))
    return filled.recorder.plans(
        "SELECT livewell.report_progress(%s, %s, %s, %s, %s)",
        filled.worker,
        ids,
        fences,
        [1] * len(ids),
        ["x"] * len(ids),
    )


def reconcile(filled: Filled) -> list[Plan]:
    known = filled.session.column(
        "SELECT fence FROM livewell.job WHERE state = 'running' AND worker = %s", filled.worker
    )
    return filled.recorder.plans("SELECT livewell.reconcile_jobs(%s, %s, %s)", filled.worker, known[BATCH:], known[-1])


def recover(filled: Filled) -> list[Plan]:
    return filled.recorder.plans("SELECT * FROM livewell.recover_jobs(%s, 100, 0)", filled.worker)


def promote(filled: Filled) -> list[Plan]:
    filled.session.rows(
        "UPDATE livewell.job SET run_at = livewell.now() WHERE id IN (SELECT id FROM livewell.job WHERE state = "
        "'delayed' LIMIT 5)"
    )
    return filled.recorder.plans("SELECT livewell.promote_jobs(5000)")


def enqueue(filled: Filled) -> list[Plan]:
    jobs = [{"id": job, "unique_key": f"new {job}"} for job in filled.session.ids(BATCH)]
    return filled.recorder.plans("SELECT * FROM livewell.enqueue_jobs(%s)", document(jobs))


def merge(filled: Filled) -> list[Plan]:
    jobs = [{"id": job, "unique_key": f"key {3 * (n + 1)}"} for n, job in enumerate(filled.session.ids(BATCH))]
    return filled.recorder.plans("SELECT * FROM livewell.enqueue_jobs(%s, true)", document(jobs))


def cancel(filled: Filled) -> list[Plan]:
    job = filled.session.value("SELECT id FROM livewell.job WHERE state = 'ready' LIMIT 1")
    return filled.recorder.plans("SELECT livewell.cancel_job(%s)", job)


# What is called, the indexes it must use, and the most rows of the live table that one of its scans
# may touch.
HOT: dict[str, tuple[Callable[[Filled], list[Plan]], set[str], int]] = {
    "claim_jobs": (claim, {"job_ready_idx", "job_pkey"}, BATCH),
    "claim_jobs, suspects": (claim_suspect, {"job_suspect_idx", "job_pkey"}, BATCH),
    "claim_limited": (claim_limited, {"job_ready_idx", "job_pkey"}, BATCH + 50),
    "claim_limited, nothing": (claim_nothing, {"job_ready_idx", "job_suspect_idx"}, 1),
    "finish_jobs": (finish, {"job_pkey"}, BATCH),
    "settle_jobs": (settle, {"job_pkey"}, BATCH),
    "renew_worker": (renew, {"job_pkey", "job_suspect_idx", "job_cancel_idx"}, 60),
    "report_progress": (progress, {"job_pkey"}, BATCH),
    "reconcile_jobs": (reconcile, {"job_worker_idx"}, 1000),
    "recover_jobs": (recover, {"job_worker_idx", "job_deadline_idx"}, 20),
    "promote_jobs": (promote, {"job_delayed_idx", "job_pkey"}, 10),
    "enqueue_jobs": (enqueue, set(), BATCH),
    "enqueue_jobs, merging": (merge, {"job_pkey", "job_unique_key_idx"}, BATCH),
    "cancel_job": (cancel, {"job_pkey"}, 1),
}


def findings(filled: Filled, name: str) -> list[str]:
    """What is wrong with any of seven calls in a row."""
    call, wanted, most = HOT[name]
    found: list[str] = []
    for time in range(TIMES):
        plans = call(filled)
        if missing := wanted - indexes(plans):
            found.append(f"call {time}: {sorted(missing)} not used, but {sorted(indexes(plans))}")
        if "job" in sequential(plans):
            found.append(f"call {time}: the live table is read from end to end")
        if (read := rows_read(plans, "job")) > most:
            found.append(f"call {time}: one scan touched {read} rows; {most} are enough")
    return found


@pytest.mark.parametrize("name", HOT)
def test_the_named_index_serves_it(filled: Filled, name: str) -> None:
    """And no scan touches more rows than the work asks for."""
    assert findings(filled, name) == []


@pytest.mark.parametrize("index", ["job_ready_idx"])
def test_a_lost_index_is_noticed(filled: Filled, index: str) -> None:
    """The rule above can fail."""
    with filled.session.connection.transaction(force_rollback=True):
        filled.session.rows(f"DROP INDEX livewell.{index}")

        assert findings(filled, "claim_jobs") != []


def test_the_queue_under_test_is_the_one_that_is_filled(filled: Filled) -> None:
    """Most rows are where the claims look."""
    rows = filled.session.rows("SELECT queue, count(*) FROM livewell.job GROUP BY 1 ORDER BY 2 DESC")

    assert rows[0][0] == QUEUE
