"""Measure a system: the pieces that several lines share.

Every drain has a database of its own; workers are processes of their own.
"""

from __future__ import annotations

from typing import Any

from bench.children import ChildFailed, ask, crew
from bench.server import Database, Server
from bench.system import System

Figures = dict[str, float]


def drain(
    server: Server, system: System, *, jobs: int, processes: int = 1, template: str | None = None, **options: Any
) -> Figures:
    """Fill a fresh database (or the copy of a crowded one), drain it, and say what it cost."""
    with server.database(template or installed(server, system)) as database:
        before = database.read()
        filled = ask(system, "fill", database.dsn, jobs=jobs)
        between = database.read()
        pace = work_off(database, system, jobs=jobs, processes=processes, **options)
        after = database.read()
    return {
        "jobs_per_second": pace,
        "fill_per_second": filled["jobs_per_second"],
        "wal_bytes_per_job": (after.wal_bytes - between.wal_bytes) / jobs,
        "wal_bytes_per_life": (after.wal_bytes - before.wal_bytes) / jobs,
        "calls_per_job": (after.calls - between.calls) / jobs,
    }


def installed(server: Server, system: System, **options: Any) -> str:
    """A template with the system's tables and nothing in them."""

    def make(dsn: str) -> None:
        ask(system, "install", dsn, **options)

    return server.template(f"{system.name} {options}", make)


def work_off(database: Database, system: System, *, jobs: int, processes: int = 1, **options: Any) -> float:
    """Jobs a second, from the first handler's start to the last finish that was written."""
    with crew(system, database.dsn, processes=processes, **options) as workers:
        workers.go()
        workers.until(jobs)
        answers = workers.stop()
    done = sum(answer["done"] for answer in answers)
    if done != jobs:
        raise ChildFailed(f"bench: {system.name}: {done:,} jobs were done, and {jobs:,} were there")
    first = min(answer["first"] for answer in answers if answer["first"] is not None)
    last = max(answer["last"] for answer in answers if answer["last"] is not None)
    return float(jobs / (last - first))
