"""Refreshes a second without a limit, one worker process, one call for each; beside a bare loop that fetches and parses the same from the same simulator, and stores nothing.

Timed from the first job that the due check made to the last one that was stored. Where the time goes: what handlers wait for (twenty run at once), what each SQL function takes in the server, and the CPU
time of worker and simulator, all for one refresh.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
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
_TIMES = "SELECT count(*), extract(epoch FROM max(finished_at) - min(created_at))::float8 FROM livewell.job_history WHERE outcome = 'succeeded'"
_FUNCTIONS = {
    "sql_due_check": "%livewell.dispatch_due(%",
    "sql_claim": "%livewell.claim_limited(%",
    "sql_store": "%livewell.store_refreshes(%",
}
_SPENT = "SELECT coalesce(sum(s.total_exec_time), 0)::float8 FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = %s AND s.query LIKE %s"


def _measure(lab: Lab) -> Figures:
    keys = symbols(lab.sizes.refreshes)
    with lab.simulator(symbols=len(keys)) as simulator, lab.database(simulator) as database:
        watch_all(database.dsn, keys, TYPE)
        before = _cpu_seconds(simulator.process.pid)
        with crew(SYSTEM, database.dsn, timed=True) as workers:
            workers.go()
            workers.until(len(keys))
            [answer] = workers.stop()
        simulated = _cpu_seconds(simulator.process.pid) - before
        with psycopg.connect(database.dsn) as connection:
            row = connection.execute(_TIMES).fetchone()
        assert row is not None
        done, seconds = row
        return {"refreshes_per_second": done / seconds} | _stages(database, answer, simulated, done)


def _stages(database: Database, answer: dict[str, Any], simulated: float, done: int) -> Figures:
    """Milliseconds for one refresh."""
    spent = {"handler_fetch": answer["seconds"]["fetch"], "handler_store": answer["seconds"]["store"]}
    with psycopg.connect(database.admin) as connection:
        for name, like in _FUNCTIONS.items():
            row = connection.execute(_SPENT, (database.name, like)).fetchone()
            spent[name] = 0.0 if row is None else row[0] / 1000
    spent |= {"cpu_worker": answer["cpu_seconds"], "cpu_simulator": simulated}
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


def _measure_bare(lab: Lab) -> Figures:
    keys = symbols(lab.sizes.refreshes)
    with lab.simulator(symbols=len(keys)) as simulator:
        answer = ask(SYSTEM, "bare", "", keys=keys, url=simulator.url)
    return {"refreshes_per_second": answer["refreshes_per_second"]}


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [Contender("livewell", lambda: _measure(lab)), Contender(BARE, lambda: _measure_bare(lab))]


LINES = (
    Line(
        "pace",
        "refreshes without a limit, one worker process",
        (
            Check("pace", "refreshes_per_second", 1000.0),
            Check("pace/bare", "refreshes_per_second", None, against=BARE),
        ),
        _contenders,
    ),
)
