"""The due check: what is stale and watched becomes jobs. Beside the old design's loop on the same data, and beside itself with ten times the ledger.

A sample is one call of dispatch_due, round trip and commit included, by the holder of the singleton on a connection that has done it before. The upstream has no limit, so that everything due becomes a
job, and the popular key is among it. Between two samples the jobs are taken away and the keys made due again, outside the time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import psycopg

from bench.children import ChildFailed
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.refresh import old_way
from bench.refresh.crowd import TYPES, fill, make_due
from bench.refresh.lab import UPSTREAM, Lab, declare, migrate, symbols

_WARM_UP = 2
_OLD = "the old way"
_SMALL = "one time the ledger"
_ACQUIRE = "SELECT fence FROM livewell.acquire_singleton('refresh.due', 'bench', NULL, interval '1 hour')"
_DISPATCH = "SELECT inserted, due FROM livewell.dispatch_due('refresh.due', %s, %s)"
_NOWHERE = "http://127.0.0.1:9/stable"


def crowded(lab: Lab, *, ledger_times: int = 1, old: bool = False) -> str:
    """The database that is copied for every measurement; made when it is asked for first."""

    def make(dsn: str) -> None:
        lab.say("making the crowded database …")
        migrate(dsn)
        declare(dsn, _NOWHERE, types=TYPES, ttl="1d")
        sizes = lab.sizes
        keys = max(10, sizes.keys)
        fill(dsn, symbols(-(-keys // 5)), sessions=sizes.sessions, keys=keys, ledger_times=ledger_times)
        if old:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(old_way.MAKE.encode())
                for table in old_way.ANALYZE:
                    connection.execute(f"VACUUM (ANALYZE) {table}".encode())

    return lab.server.template(f"crowd {ledger_times} {old}", make)


def _measure(lab: Lab, template: str) -> Figures:
    with (
        lab.server.database(template) as database,
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        connection.prepare_threshold = 0
        fence = _one(connection, _ACQUIRE)[0]
        took = []
        for _ in range(_WARM_UP + lab.sizes.checks):
            due = make_due(connection)
            started = time.perf_counter()
            answer = _one(connection, _DISPATCH, (fence, UPSTREAM))
            took.append(1000 * (time.perf_counter() - started))
            if answer != (min(due, 1000), due):
                raise ChildFailed(f"bench: {due} keys are due, and the check found and queued {answer}")
    took = took[_WARM_UP:]
    median = statistics.median(took)
    return {"ms": median, "slowest_ms": max(took), "checks_per_second": 1000 / median, "due": due}


def _measure_old(lab: Lab, template: str) -> Figures:
    with (
        lab.server.database(template) as database,
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        due = make_due(connection)
        for table in old_way.ANALYZE:
            connection.execute(f"TABLE {table}".encode())  # once into memory, as ours is
        started = time.perf_counter()
        queued = _one(connection, old_way.CHECK)[0]
        took = 1000 * (time.perf_counter() - started)
        if queued != due:
            raise ChildFailed(f"bench: {due} keys are due, and the old way queued {queued}")
    return {"ms": took, "slowest_ms": took, "checks_per_second": 1000 / took, "due": due}


def _one(connection: psycopg.Connection[Any], query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
    row = connection.execute(query.encode(), values).fetchone()
    assert row is not None
    return tuple(row)


def _beside_the_old_way(lab: Lab) -> Sequence[Contender]:
    return [
        Contender("livewell", lambda: _measure(lab, crowded(lab, old=True))),
        Contender(_OLD, lambda: _measure_old(lab, crowded(lab, old=True))),
    ]


def _beside_a_small_ledger(lab: Lab) -> Sequence[Contender]:
    return [
        Contender("livewell", lambda: _measure(lab, crowded(lab, ledger_times=10))),
        Contender(_SMALL, lambda: _measure(lab, crowded(lab, old=True))),
    ]


LINES = (
    Line(
        "due",
        "due check, 1 % of 50,000 keys due, 300,000 subscriptions",
        (Check("due", "ms", 50.0, at_most=True), Check("due/old-way", "checks_per_second", 100.0, against=_OLD)),
        _beside_the_old_way,
    ),
    Line(
        "due-ten",
        "due check, ten times the ledger",
        (Check("due-ten", "ms", 1.3, against=_SMALL, at_most=True),),
        _beside_a_small_ledger,
    ),
)
