"""An old snapshot is held for a minute under load.

Then the same drain as before it, by the same worker process.

    drain ──▶ somebody opens a snapshot ──▶ events come and go for 60 s ──▶ drain again, it is still held

The sink is paused while the backlog is made, so that both drains start with everything waiting.
From the first batch that the database finished to the last, by its own clock.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import psycopg

from bench.children import Child, ChildFailed
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.outbox.lab import SINK, Lab, feed, one, relay

_DRAINS = 3  # before and after: the median of so many
_BACKLOG = 5000  # the feeder waits while so many wait
_FEED = 1000

_PAUSE = "UPDATE livewell.event_sink SET paused_at = CASE WHEN %s THEN now() END WHERE name = %s"
_TIMES = "SELECT extract(epoch FROM max(sent_at) - min(sent_at))::float8 FROM livewell.event_sent WHERE sent_at > %s"
_HELD = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND backend_xmin IS NOT NULL"
Connection = psycopg.Connection[Any]


def _measure(lab: Lab) -> Figures:
    with (
        lab.database() as database,
        psycopg.connect(database.dsn, autocommit=True) as feeder,
        psycopg.connect(database.dsn) as reader,
        relay(database) as worker,
    ):
        worker.tell("go")
        _drain(lab, feeder, worker)  # a cold start would make the pace before look low, and the ratio good
        before = statistics.median(_drain(lab, feeder, worker) for _ in range(_DRAINS))
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM livewell.event_sink")
        load = _load(lab, feeder, worker)
        held = statistics.median(_drain(lab, feeder, worker) for _ in range(_DRAINS))
        row = feeder.execute(_HELD, (reader.info.backend_pid,)).fetchone()
        if row != (1,):
            raise ChildFailed("bench: old-snapshot: the snapshot was not held until the end")
        reader.rollback()
        worker.tell("stop")
        worker.answer()
    return {
        "ratio_to_before": held / before,
        "events_per_second": held,
        "before_events_per_second": before,
        "load_events_per_second": load,
    }


def _drain(lab: Lab, feeder: Connection, worker: Child) -> float:
    done, events = worker.done, lab.sizes.snapshot
    mark = one(feeder, "SELECT clock_timestamp()")
    feeder.execute(_PAUSE, (True, SINK))
    feed(feeder, events, keys=lab.sizes.keys)
    feeder.execute(_PAUSE, (False, SINK))
    feeder.execute("SELECT pg_notify('livewell', 'events')")
    worker.wait(lambda: worker.done >= done + events)
    row = None
    while row is None or row[0] is None:
        row = feeder.execute(_TIMES, (mark,)).fetchone()
    return events / max(float(row[0]), 1e-3)


def _load(lab: Lab, feeder: Connection, worker: Child) -> float:
    """Events come as fast as they go, and no faster; answers how fast that is."""
    first, started = worker.done, time.monotonic()
    fed = 0
    while time.monotonic() - started < lab.sizes.snapshot_seconds:
        if fed - (worker.done - first) < _BACKLOG:
            feed(feeder, _FEED, keys=lab.sizes.keys)
            feeder.execute("SELECT pg_notify('livewell', 'events')")
            fed += _FEED
        else:
            time.sleep(0.005)
    worker.wait(lambda: worker.done >= first + fed)
    return fed / (time.monotonic() - started)


LINES: tuple[Line[Lab], ...] = (
    Line(
        "old-snapshot",
        "with an old snapshot held for 60 s under load",
        (Check("old-snapshot", "ratio_to_before", 0.7),),
        lambda lab: [Contender("livewell", lambda: _measure(lab))],
    ),
)
