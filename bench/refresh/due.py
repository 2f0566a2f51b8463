"""The due check: what is stale and watched becomes jobs.

Beside the old design's loop on the same data, and beside itself with ten times the ledger.

A sample is one call of dispatch_due, round trip and commit included, by the holder of the singleton
on a connection that has done it before. The upstream has no limit, so that everything due becomes a
job, and the popular key is among it. Between two samples the jobs are taken away and the keys made
due again, outside the time. due-all: every key is due and ten calls may go, as under a limit of 300
a minute; beside it the check of one key in a hundred.
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
from bench.refresh.crowd import TYPES, fill, make_all_due, make_due, make_due_again
from bench.refresh.lab import UPSTREAM, Lab, declare, migrate, symbols

_WARM_UP = 2
_OLD = "the old way"
_SMALL = "one time the ledger"
_SOME = "one key in a hundred due"
_ACQUIRE = "SELECT fence FROM livewell.acquire_singleton('refresh.due', 'bench', NULL, interval '1 hour')"
_DISPATCH = "SELECT inserted, due FROM livewell.dispatch_due('refresh.due', %s, %s)"
_DISPATCH_SOME = "SELECT inserted FROM livewell.dispatch_due('refresh.due', %s, %s, 10)"
_RECOUNT = "SELECT * FROM livewell.recount_viewers(%s, %s, %s)"
_ALL_TIMES = 11  # times as many samples as of the others: its slowest are told apart
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
        return sampled(connection, lab.sizes.checks)


def sampled(connection: psycopg.Connection[Any], checks: int) -> Figures:
    """So many due checks on a database that crowded() has made."""
    connection.prepare_threshold = 0
    fence = _one(connection, _ACQUIRE)[0]
    took = []
    for _ in range(_WARM_UP + checks):
        due = make_due(connection)
        started = time.perf_counter()
        answer = _one(connection, _DISPATCH, (fence, UPSTREAM))
        took.append(1000 * (time.perf_counter() - started))
        if answer != (min(due, 1000), due):
            raise ChildFailed(f"bench: {due} keys are due, and the check found and queued {answer}")
    return _figures(took[_WARM_UP:], due)


def _measure_all(lab: Lab, template: str) -> Figures:
    with (
        lab.server.database(template) as database,
        psycopg.connect(database.dsn, autocommit=True) as connection,
    ):
        connection.prepare_threshold = 0
        due = make_all_due(connection)
        fence = _one(connection, _ACQUIRE)[0]
        took = []
        counted: tuple[Any, ...] = (None, None)
        for _ in range(_WARM_UP + _ALL_TIMES * lab.sizes.checks):
            counted = _one(connection, _RECOUNT, (UPSTREAM, *counted))  # every second, beside the checks
            started = time.perf_counter()
            [inserted] = _one(connection, _DISPATCH_SOME, (fence, UPSTREAM))
            took.append(1000 * (time.perf_counter() - started))
            if inserted != min(due, 10):
                raise ChildFailed(f"bench: {due} keys are due, and the check queued {inserted}")
            make_due_again(connection)
    return _figures(took[_WARM_UP:], due)


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
    return _figures([took], due)


def _figures(took: Sequence[float], due: int) -> Figures:
    """Of fewer than a hundred samples the slowest is the p99."""
    median = statistics.median(took)
    p99 = sorted(took)[-1 - len(took) // 100]
    return {"p50_ms": median, "p99_ms": p99, "checks_per_second": 1000 / median, "due": due}


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


def _everything_is_due(lab: Lab) -> Sequence[Contender]:
    return [
        Contender("livewell", lambda: _measure_all(lab, crowded(lab, old=True))),
        Contender(_SOME, lambda: _measure(lab, crowded(lab, old=True))),
    ]


LINES = (
    Line(
        "due",
        "due check, 1 % of 50,000 keys due, 300,000 subscriptions",
        (Check("due", "p50_ms", 50.0, at_most=True), Check("due/old-way", "checks_per_second", 100.0, against=_OLD)),
        _beside_the_old_way,
    ),
    Line(
        "due-ten",
        "due check, ten times the ledger",
        (Check("due-ten", "p50_ms", 1.3, against=_SMALL, at_most=True),),
        _beside_a_small_ledger,
    ),
    Line(
        "due-all",
        "due check, all of 50,000 keys due, room for ten calls",
        (
            Check("due-all", "p50_ms", 100.0, at_most=True),
            Check("due-all/some", "p50_ms", 2.0, against=_SOME, at_most=True),
            # When a plan turned one check in a hundred took 6 s. Beside another check: a bound for
            # busy machines too.
            Check("due-all/p99", "p99_ms", 2.0, against=_SOME, at_most=True),
        ),
        _everything_is_due,
    ),
)
