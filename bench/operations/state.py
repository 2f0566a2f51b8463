"""The system state with a million live jobs, ten million rows of history and three hundred thousand subscriptions.

A sample is one call of system_state() as livewell_operate makes it, round trip and commit included,
on a connection that has done it before. `ms` is the dearer kind, which takes the sample anew;
`kept_ms` is what everybody else pays within the ten seconds. Whether the estimate is right is
checked too: a figure that is quick and wrong is no figure.

For each session there are ten live jobs (ready, delayed, held and running in five queues) and a
hundred rows of history over the days that are kept.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from bench import server
from bench.children import ChildFailed
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.operations.lab import Lab
from bench.operations.sizes import Sizes
from bench.refresh.crowd import TYPES, fill
from bench.refresh.lab import declare, migrate, symbols

_WARM_UP = 2
_JOBS_PER_SESSION, _HISTORY_PER_SESSION = 10, 100
_WRONG_MAX = 0.2
_NOWHERE = "http://127.0.0.1:9/stable"
_STATE = "SELECT livewell.system_state()"

_QUEUES = "SELECT livewell.declare_queue('work_' || n, 5, 5, 300, 5) FROM generate_series(0, 4) AS n"
_WORKER = "SELECT livewell.register_worker('bench', (SELECT version FROM livewell.release), '{*}', '{task}', 100, 3600)"
# Of a hundred jobs 80 are ready, 15 delayed, 5 held; the first hundred of all are running.
_JOBS = """
INSERT INTO livewell.job (id, rank, run_at, created_at, state, held_by, worker, fence, started_at, attempt, max_attempts, queue, kind, payload)
SELECT n, n, livewell.now(), livewell.now(), s.state, CASE s.state WHEN 'held' THEN 'g'::"char" END, CASE s.state WHEN 'running' THEN %(worker)s END, n, CASE s.state WHEN 'running' THEN livewell.now() END,
       CASE s.state WHEN 'running' THEN 1 ELSE 0 END, 5, 'work_' || n %% 5, 'task', '{"customer": 1, "what": "something to do"}'
FROM generate_series(1, %(jobs)s) AS n
CROSS JOIN LATERAL (SELECT CASE WHEN n <= 100 THEN 'running' WHEN n %% 100 < 80 THEN 'ready' WHEN n %% 100 < 95 THEN 'delayed' ELSE 'held' END::livewell.job_state AS state) s
"""
_HISTORY = """
INSERT INTO livewell.job_history (id, fence, worker, created_at, started_at, finished_at, attempt, outcome, queue, kind)
SELECT n, n, 1, m.at, m.at, m.at, 1, 'succeeded', 'work_' || n %% 5, 'task'
FROM generate_series(1, %(history)s) AS n CROSS JOIN LATERAL (SELECT livewell.now() + (n %% 10) * interval '1 day' AS at) m
"""
_TABLES = (
    "livewell.job",
    "livewell.job_history",
    "livewell.ledger",
    "livewell.subscription",
    "livewell.viewer_session",
)


def crowded(lab: Lab) -> str:
    """The database that is copied for every measurement; made when it is asked for first."""

    def make(dsn: str) -> None:
        lab.say("making a database with a crowd, a backlog and a past …")
        migrate(dsn)
        declare(dsn, _NOWHERE, types=TYPES, ttl="1d")
        keys = max(10, lab.sizes.keys)
        fill(dsn, symbols(-(-keys // 5)), sessions=lab.sizes.sessions, keys=keys)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(_QUEUES)
            worker = _one(connection, _WORKER)
            values = {
                "worker": worker,
                "jobs": lab.sizes.sessions * _JOBS_PER_SESSION,
                "history": lab.sizes.sessions * _HISTORY_PER_SESSION,
            }
            for query in (_JOBS, _HISTORY):
                connection.execute(query.encode(), values)
            for table in _TABLES:
                connection.execute(f"VACUUM (ANALYZE) {table}".encode())

    return lab.server.template("state", make)


def _measure(lab: Lab) -> Figures:
    with (
        lab.server.database(crowded(lab)) as database,
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        connection.execute("SET ROLE livewell_operate")
        connection.prepare_threshold = 0
        taken, kept = [], []
        for _ in range(_WARM_UP + lab.sizes.checks):
            connection.execute("UPDATE livewell.state_sample SET at = '-infinity'")
            taken.append(_timed(connection, lab))
            kept.append(_timed(connection, lab))
    taken, kept = taken[_WARM_UP:], kept[_WARM_UP:]
    return {"ms": statistics.median(taken), "slowest_ms": max(taken), "kept_ms": statistics.median(kept)}


def _timed(connection: psycopg.Connection[Any], lab: Lab) -> float:
    """One look, in milliseconds; what it says has to be true."""
    started = time.perf_counter()
    document = _one(connection, _STATE)
    took = 1000 * (time.perf_counter() - started)
    jobs = lab.sizes.sessions * _JOBS_PER_SESSION
    told = sum(queue[state] for queue in document["queue"]["queues"] for state in ("ready", "delayed", "held"))
    if abs(told - (jobs - 100)) > _WRONG_MAX * jobs:
        raise ChildFailed(f"bench: there are {jobs - 100:,} jobs that wait, and the state says {told:,}")
    running = sum(queue["running"] for queue in document["queue"]["queues"])
    if running != min(jobs, 100):
        raise ChildFailed(f"bench: {min(jobs, 100)} jobs run, and the state says {running}")
    subscriptions = document["refresh"]["subscriptions"]
    if abs(subscriptions - 3 * lab.sizes.sessions) > _WRONG_MAX * 3 * lab.sizes.sessions:
        raise ChildFailed(
            f"bench: there are {3 * lab.sizes.sessions:,} subscriptions, and the state says {subscriptions:,}"
        )
    return took


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [Contender("livewell", lambda: _measure(lab))]


LINES = (
    Line(
        "state",
        "system state with 1,000,000 live jobs, 10,000,000 rows of history, 300,000 subscriptions",
        (Check("state", "ms", 100.0, at_most=True), Check("state/kept", "kept_ms", None, at_most=True)),
        _contenders,
    ),
)


def main(scale: float = 1.0) -> None:
    """`python -m bench.operations.state [SCALE]`: this line alone, as JSON."""
    with server.start() as started, tempfile.TemporaryDirectory(prefix="livewell-bench-") as folder:
        lab = Lab(started, Sizes().scaled(scale), Path(folder), lambda line: print(line, file=sys.stderr))
        print(json.dumps(_measure(lab)))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
