"""F-B17: the hot functions on a large table whose statistics are wrong.

Wrong in four ways: never analysed, analysed while empty, analysed while full and then nearly
emptied, analysed when nothing was ready. auto_explain shows the plans inside the functions (EXPLAIN
of a function shows only "Function Scan"); where it cannot be loaded, the server's counters alone
judge. Each function runs often enough for its cached plans to become generic.

Proven: with job_ready_idx dropped the claim's plan was a sequential scan, and the counters said so
too; before settle_jobs was mended, taking jobs back was quadratic.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B17"
TITLE = "plans with wrong statistics"

CLAIM = 50
ROUNDS = 12  # plpgsql may turn to a generic plan after five
LOST = 1000
WORK_PER_LOST_MAX = 60.0  # rows handled per job taken back, all plan nodes together; a quadratic plan handles hundreds
ROWS_PER_CLAIM_MAX = (
    20.0  # 2 when nobody else holds a snapshot, 6.5 seen while others did; a scan of the table would be thousands
)

EXPLAIN = """
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_nested_statements = on;
SET auto_explain.log_format = json;
SET auto_explain.log_analyze = on;
SET auto_explain.log_timing = off;
SET auto_explain.log_level = notice;
"""
FILL = """
INSERT INTO livewell.job (id, rank, run_at, created_at, state, max_attempts, queue, kind, payload, worker)
SELECT n, n, now() + CASE WHEN %(state)s = 'delayed' THEN interval '1 day' ELSE '0' END, now(), %(state)s::livewell.job_state, 5, 'work', 'plain',
       '{}', NULL
FROM generate_series(%(first)s::bigint, %(first)s::bigint + %(rows)s::bigint - 1) n
"""
COUNTERS = """
SELECT t.seq_tup_read, (SELECT idx_tup_read FROM pg_stat_user_indexes i WHERE i.relid = t.relid AND i.indexrelname = 'job_ready_idx')
FROM pg_stat_user_tables t WHERE t.relid = 'livewell.job'::regclass
"""
# Which statement of which function, told by its text; and the indexes it may use on livewell.job,
# by alias.
WANTED = {
    "look": ("FROM livewell.job r", {"r": {"job_ready_idx"}}),
    "claim": ("UPDATE livewell.job j SET state = 'running'", {"j": {"job_pkey"}}),
    "finish": ("DELETE FROM livewell.job j WHERE j.id = ANY", {"j": {"job_pkey"}}),
    "promote": ("FROM livewell.job d", {"d": {"job_delayed_idx"}, "j": {"job_pkey"}}),
}


@dataclass(slots=True)
class Seen:
    """What the functions did to livewell.job."""

    plans: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    sequential: set[str] = field(default_factory=set)
    work: float = 0.0  # rows that went through the nodes of the plans, or were thrown away there
    notices: int = 0


async def run(scale: Scale) -> Findings:
    findings = Findings()
    rows = scale.pick(10_000, 1_000_000)
    async with open_fleet(scale) as fleet:
        fleet.rows("ALTER TABLE livewell.job SET (autovacuum_enabled = false)")
        figures: dict[str, float] = {}
        for state in ("never", "empty", "emptied", "nothing_ready"):
            _prepare(fleet, state, rows)
            figures[f"rows_per_claimed_{state}"] = round(_try(fleet, findings, state), 2)
            figures |= _recover_many(fleet, findings, state)
        findings.figures |= {"rows": rows, **figures}
    return findings


def _prepare(fleet: Fleet, state: str, rows: int) -> None:
    """Fill the table so that its statistics are wrong in this way."""
    fleet.rows("TRUNCATE livewell.job")
    if state == "empty":
        fleet.rows("VACUUM ANALYZE livewell.job")
    if state == "nothing_ready":
        _fill(fleet, "delayed", 1, rows)
        fleet.rows("ANALYZE livewell.job")
    if state == "emptied":
        _fill(fleet, "ready", 10**9, rows)
        fleet.rows("ANALYZE livewell.job")
        fleet.rows("DELETE FROM livewell.job")
        _fill(fleet, "ready", 1, CLAIM * ROUNDS + 2 * LOST)
        fleet.rows("VACUUM (INDEX_CLEANUP on) livewell.job")
        return
    _fill(fleet, "ready", 10**8, rows)


def _fill(fleet: Fleet, state: str, first: int, rows: int) -> None:
    with psycopg.connect(fleet.dsn, autocommit=True) as connection:
        connection.execute(FILL, {"state": state, "first": first, "rows": rows})


def _try(fleet: Fleet, findings: Findings, state: str) -> float:
    """Run every hot function in one session.

    Answers how many index entries were read per job claimed.
    """
    seen = Seen()
    with psycopg.connect(fleet.dsn, autocommit=True) as session:
        explained = _explain(session, seen)
        worker = _one(session, "SELECT livewell.register_worker('plans', 'test', '{work}', '{plain}', 10, 3600)")
        before = _counters(fleet)
        claimed: list[tuple[Any, ...]] = []
        total = 0
        for _ in range(ROUNDS):
            ids, fences = [row[1] for row in claimed], [row[2] for row in claimed]
            claimed = session.execute(
                "SELECT * FROM livewell.exchange_jobs(%s, %s::bigint[], %s::bigint[], NULL, '{work}', %s, false)",
                (worker, ids, fences, CLAIM),
            ).fetchall()
            total += len(claimed)
            session.execute("SELECT * FROM livewell.renew_worker(%s, '{}', '{}', '{}')", (worker,))
            session.execute("SELECT livewell.reconcile_jobs(%s, %s, 0)", (worker, fences))
            session.execute("SELECT livewell.promote_jobs(100)")
            session.execute("SELECT * FROM livewell.recover_jobs(%s, 100, 5)", (worker,))
        session.execute("SELECT pg_stat_force_next_flush()")
        session.execute("SELECT livewell.release_worker(%s)", (worker,))
    after = _counters(fleet)
    findings.fired += total
    findings.check(total == CLAIM * ROUNDS, f"{state}: {total} of {CLAIM * ROUNDS} jobs were claimed")
    findings.check(after[0] == before[0], f"{state}: {after[0] - before[0]} rows were read by sequential scans of job")
    rows_per_claimed = (after[1] - before[1]) / max(total, 1)
    findings.check(
        0 < rows_per_claimed <= ROWS_PER_CLAIM_MAX,
        f"{state}: {rows_per_claimed:.1f} entries of job_ready_idx were read per job claimed",
    )
    if explained:
        _judge(findings, state, seen)
    findings.figures["auto_explain"] = explained
    return rows_per_claimed


def _recover_many(fleet: Fleet, findings: Findings, state: str) -> dict[str, float]:
    """Take a thousand jobs back from a dead worker at once.

    Twice as many must not cost four times as much.
    """
    seen = Seen()
    with psycopg.connect(fleet.dsn, autocommit=True) as session:
        dead, alive = (
            _one(session, "SELECT livewell.register_worker('plans', 'test', '{work}', '{plain}', 10, 3600)")
            for _ in range(2)
        )
        lost = len(
            session.execute("SELECT id FROM livewell.claim_jobs(%s, '{work}', %s, false)", (dead, LOST)).fetchall()
        )
        session.execute("DELETE FROM livewell.worker WHERE id = %s", (dead,))
        explained = _explain(session, seen)
        begun = time.monotonic()
        session.execute("SELECT * FROM livewell.recover_jobs(%s, %s, 5)", (alive, LOST))
        seconds = time.monotonic() - begun
        session.execute("DELETE FROM livewell.worker")
    work = seen.work / max(lost, 1)
    findings.check(lost == LOST, f"{state}: {lost} of {LOST} jobs were claimed")
    findings.check(
        not explained or 0 < work <= WORK_PER_LOST_MAX,
        f"{state}: taking back {lost} jobs handled {work:.0f} rows per job ({seconds:.2f} s): the plan is quadratic",
    )
    return {
        f"recover_{LOST}_rows_per_job_{state}": round(work, 1),
        f"recover_{LOST}_seconds_{state}": round(seconds, 3),
    }


def _judge(findings: Findings, state: str, seen: Seen) -> None:
    findings.check(seen.notices > 0, "auto_explain said nothing")
    findings.check(not seen.sequential, f"{state}: sequential scans of job in {sorted(seen.sequential)}")
    for name, (_, wanted) in WANTED.items():
        for alias, indexes in wanted.items():
            used = seen.plans[f"{name}.{alias}"]
            findings.check(
                used == indexes, f"{state}: {name} reads job {alias} by {sorted(used)}, not {sorted(indexes)}"
            )


def _explain(session: psycopg.Connection[Any], seen: Seen) -> bool:
    try:
        session.execute(EXPLAIN)
    except psycopg.Error:
        return False
    session.add_notice_handler(lambda notice: _read(notice.message_primary or "", seen))
    return True


def _read(message: str, seen: Seen) -> None:
    if "plan:\n" not in message:
        return
    plan = json.loads(message.split("plan:\n", 1)[1])
    text = re.sub(r"\s+", " ", plan["Query Text"])
    seen.notices += 1
    name = next((name for name, (mark, _) in WANTED.items() if mark in text), "other")
    for node in _nodes(plan["Plan"]):
        seen.work += _work(node)
        if node.get("Relation Name") != "job" or "Scan" not in node["Node Type"]:
            continue
        indexes = {
            below["Index Name"] for below in _nodes(node) if "Index Name" in below
        }  # a bitmap scan's are below it
        seen.plans[f"{name}.{node['Alias']}"] |= indexes or {node["Node Type"]}
        if node["Node Type"] == "Seq Scan":
            seen.sequential.add(text[:200])


def _work(node: dict[str, Any]) -> float:
    """Rows that came out of this node or were thrown away in it.

    An array looked through again in every loop counts with its length.
    """
    loops = float(node.get("Actual Loops", 1))
    thrown_away = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
    looked_through = LOST if loops > 10 and "= ANY (" in f"{node.get('Index Cond')} {node.get('Filter')}" else 0
    return loops * (float(node.get("Actual Rows", 0)) + float(thrown_away) + looked_through)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _counters(fleet: Fleet) -> tuple[int, int]:
    fleet.rows("SELECT pg_stat_force_next_flush()")
    fleet.rows("SELECT pg_stat_clear_snapshot()")
    seq, idx = fleet.rows(COUNTERS)[0]
    return int(seq or 0), int(idx or 0)


def _one(session: psycopg.Connection[Any], query: str) -> Any:
    row = session.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
