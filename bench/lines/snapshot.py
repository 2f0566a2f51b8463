"""An old snapshot is held for a minute under load.

Then the same drain as before it, by the same worker process.

    drain 20,000 ──▶ somebody opens a snapshot ──▶ jobs come and go for 60 s ──▶ drain 20,000 again, the snapshot still held

The queue is paused while it is filled, so that both drains start with everything waiting. From the
first claim to the last finish, by the database's clock.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence

import psycopg

from bench.children import ChildFailed, Crew, crew
from bench.line import Check, Contender, Lab, Line
from bench.measure import Figures, installed
from bench.payload import PAYLOAD
from bench.system import LIVEWELL

_FEED = 1000  # jobs in one statement
_BACKLOG = 3000  # the feeder waits while so many wait
_DRAINS = 3  # before and after: the median of so many

Connection = psycopg.Connection[tuple[float, ...]]


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [Contender("livewell", lambda: _measure(lab))]


def _measure(lab: Lab) -> Figures:
    with (
        lab.server.database(installed(lab.server, LIVEWELL)) as database,
        psycopg.connect(database.dsn, autocommit=True) as feeder,
        psycopg.connect(database.dsn) as reader,
        crew(LIVEWELL, database.dsn) as worker,
    ):
        worker.go()
        _drain(feeder, worker, lab.sizes.jobs)  # a cold start would make the pace before look low, and the ratio good
        before = statistics.median(_drain(feeder, worker, lab.sizes.jobs) for _ in range(_DRAINS))
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM livewell.queue")
        load = _load(feeder, worker, lab.sizes.snapshot_seconds)
        held = statistics.median(_drain(feeder, worker, lab.sizes.jobs) for _ in range(_DRAINS))
        _require_held(feeder, reader.info.backend_pid)
        reader.rollback()
        worker.stop()
    return {
        "ratio_to_before": held / before,
        "jobs_per_second": held,
        "before_jobs_per_second": before,
        "load_jobs_per_second": load,
    }


def _require_held(feeder: Connection, pid: int) -> None:
    """A snapshot that was gone before the end would make the figure worthless."""
    if not _one(feeder, "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND backend_xmin IS NOT NULL", pid):
        raise ChildFailed("bench: old-snapshot: the snapshot was not held until the end")


def _drain(feeder: Connection, worker: Crew, jobs: int) -> float:
    done = worker.done
    mark = _one(feeder, "SELECT coalesce(max(id), 0) FROM livewell.job_history")
    feeder.execute("SELECT livewell.pause_queue('bench', true)")
    for at in range(0, jobs, _FEED):
        _feed(feeder, min(_FEED, jobs - at))
    feeder.execute("SELECT livewell.pause_queue('bench', false)")
    feeder.execute("SELECT pg_notify('livewell', 'bench')")
    worker.until(done + jobs)
    return jobs / _one(
        feeder,
        "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8 FROM livewell.job_history WHERE id > %s",
        mark,
    )


def _load(feeder: Connection, worker: Crew, seconds: float) -> float:
    """Jobs come as fast as they go, and no faster; answers how fast that is."""
    first, started = worker.done, time.monotonic()
    fed = 0
    while time.monotonic() - started < seconds:
        if fed - (worker.done - first) < _BACKLOG:
            _feed(feeder, _FEED)
            feeder.execute("SELECT pg_notify('livewell', 'bench')")
            fed += _FEED
        else:
            time.sleep(0.005)
    worker.until(first + fed)
    return fed / (time.monotonic() - started)


def _feed(feeder: Connection, jobs: int) -> None:
    """One statement, with ids from reserved blocks as a client has them."""
    feeder.execute(
        "SELECT livewell.enqueue_jobs(jsonb_agg(jsonb_build_object('id', id, 'queue', 'bench', 'kind', 'noop', "
        "'payload', %s::jsonb)))"
        " FROM (SELECT block + n FROM livewell.reserve_job_ids(%s) AS block, generate_series(0, 63) AS n LIMIT "
        "%s) AS reserved (id)",
        (json.dumps(PAYLOAD), -(-jobs // 64), jobs),
    )


def _one(feeder: Connection, query: str, *params: float) -> float:
    row = feeder.execute(query.encode(), params).fetchone()
    assert row is not None
    return row[0]


LINES = (
    Line(
        "old-snapshot",
        "with an old snapshot held for 60 s under load",
        (Check("old-snapshot", "ratio_to_before", 0.7),),
        _contenders,
    ),
)
