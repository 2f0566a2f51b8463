"""Refreshes a second without a limit, one worker process.

Beside a bare loop that fetches and parses the same from a simulator, and stores nothing.

pace: the shipped quote, whose batch endpoint gives fifty keys in a call. pace-single: one call for
each key; what a call costs on both sides of the wire is most of that.

Timed from the first job that the due check made to the last one that was stored. Where the time
goes: what handlers wait for (twenty run at once), what each SQL function takes in the server, and
the CPU time of worker and simulator, all for one refresh.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from bench.children import ask, crew
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.refresh.crowd import watch_all
from bench.refresh.lab import SYSTEM, TYPE, Lab, symbols
from bench.server import Database

BARE = "a bare loop"
_BATCH = 50
_TIMES = (
    "SELECT count(*), extract(epoch FROM max(finished_at) - min(created_at))::float8 FROM livewell.job_history "
    "WHERE outcome = 'succeeded'"
)
_FUNCTIONS = {
    "sql_due_check": "%livewell.dispatch_due(%",
    "sql_claim": "%livewell.claim_limited(%",
    "sql_store": "%livewell.store_refreshes(%",
}
_SPENT = (
    "SELECT coalesce(sum(s.total_exec_time), 0)::float8 FROM pg_stat_statements s JOIN pg_database d ON d.oid = "
    "s.dbid WHERE d.datname = %s AND s.query LIKE %s"
)


def _measure(lab: Lab, together: int) -> Figures:
    keys = _keys(lab, together)
    with (
        lab.simulator(symbols=len(keys)) as simulator,
        lab.database(simulator, batch=together > 1) as database,
    ):
        watch_all(database.dsn, keys, TYPE)
        before = _cpu_seconds(simulator.process.pid)
        server_before = _server_cpu_seconds(database)
        with crew(SYSTEM, database.dsn, timed=True) as workers:
            workers.go()
            workers.until(len(keys))
            [answer] = workers.stop()
        cpu = {
            "cpu_worker": answer["cpu_seconds"],
            "cpu_postgres": _server_cpu_seconds(database) - server_before,
            "cpu_simulator": _cpu_seconds(simulator.process.pid) - before,
        }
        with psycopg.connect(database.dsn) as connection:
            row = connection.execute(_TIMES).fetchone()
        assert row is not None
        done, seconds = row
        return {"refreshes_per_second": done / seconds} | _stages(database, answer, cpu, done)


def _stages(database: Database, answer: dict[str, Any], cpu: dict[str, float], done: int) -> Figures:
    """Milliseconds for one refresh."""
    spent = {"handler_fetch": answer["seconds"]["fetch"], "handler_store": answer["seconds"]["store"]}
    with psycopg.connect(database.admin) as connection:
        for name, like in _FUNCTIONS.items():
            row = connection.execute(_SPENT, (database.name, like)).fetchone()
            spent[name] = 0.0 if row is None else row[0] / 1000
    spent |= cpu
    return {f"stage_{name}_ms": 1000 * seconds / done for name, seconds in spent.items()} | {
        "stored_together": done / max(1, answer["calls"]["flush"])
    }


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process, where there is a /proc."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _server_cpu_seconds(database: Database) -> float:
    """The same of the whole server: the processes there are, and those that ended."""
    if not Path("/proc/self/stat").exists():
        return 0.0
    with psycopg.connect(database.admin) as connection:
        backend = connection.info.backend_pid
        postmaster = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1]
        ended = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()[13:15]
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        return sum(_cpu_seconds(int(pid)) for pid in children) + sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")


def _measure_bare(lab: Lab, together: int) -> Figures:
    keys = _keys(lab, together)
    with lab.simulator(symbols=len(keys)) as simulator:
        answer = ask(SYSTEM, "bare", "", symbols=len(keys), together=together, url=simulator.url)
    return {"refreshes_per_second": answer["refreshes_per_second"]}


def _keys(lab: Lab, together: int) -> list[str]:
    return symbols(lab.sizes.refreshes if together > 1 else max(1, lab.sizes.refreshes // 4))


def _contenders(together: int) -> Callable[[Lab], Sequence[Contender]]:
    return lambda lab: [
        Contender("livewell", lambda: _measure(lab, together)),
        Contender(BARE, lambda: _measure_bare(lab, together)),
    ]


LINES = (
    Line(
        "pace",
        "refreshes without a limit, one worker process",
        (
            Check("pace", "refreshes_per_second", 1000.0),
            Check("pace/bare", "refreshes_per_second", None, against=BARE),
        ),
        _contenders(_BATCH),
    ),
    Line(
        "pace-single",
        "the same, one call for each key",
        (Check("pace-single", "refreshes_per_second", None, against=BARE),),
        _contenders(1),
    ),
)
