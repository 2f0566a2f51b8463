"""Drain in a database that is full of something else, beside the same drain in an empty one.

The crowded database is made once in a run and copied for every pair, so that every drain has a
fresh one. Jobs that wait have been vacuumed once, as they have wherever they wait for more than
seconds: autovacuum's first pass over half a million new rows would else fall into every drain (54
MB of WAL). What was processed is left as it lies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from bench.children import ask, crew
from bench.line import Check, Contender, Lab, Line
from bench.measure import drain, installed
from bench.system import LIVEWELL
from livewell import Livewell

_LATER_SECONDS = 6 * 3600
_GROUP = {"group": "full"}

Crowd = Callable[[Lab, str], None]


def _other_queue(lab: Lab, dsn: str) -> None:
    ask(LIVEWELL, "fill", dsn, jobs=lab.sizes.crowd, queue="elsewhere")
    _vacuum(dsn)


def _later(lab: Lab, dsn: str) -> None:
    ask(LIVEWELL, "fill", dsn, jobs=lab.sizes.crowd, delay_seconds=_LATER_SECONDS)
    _vacuum(dsn)


def _full_group(lab: Lab, dsn: str) -> None:
    """One of the group runs elsewhere and fills it; the others wait."""
    ask(LIVEWELL, "fill", dsn, jobs=lab.sizes.grouped, **_GROUP)
    ask(LIVEWELL, "take", dsn, jobs=1, **_GROUP)
    _vacuum(dsn)


def _processed(lab: Lab, dsn: str) -> None:
    ask(LIVEWELL, "fill", dsn, jobs=lab.sizes.processed)
    with crew(LIVEWELL, dsn) as worker:
        worker.go()
        worker.until(lab.sizes.processed)
        worker.stop()


def _in_flight(lab: Lab, dsn: str) -> None:
    ask(LIVEWELL, "fill", dsn, jobs=lab.sizes.in_flight)
    ask(LIVEWELL, "take", dsn, jobs=lab.sizes.in_flight)


def _vacuum(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE) livewell.job")


def _no_group_limits() -> str | None:
    if "group_limit" in inspect.signature(Livewell.queue).parameters:
        return None
    return "no group limits in this version"


def _template(lab: Lab, name: str, make: Crowd, options: dict[str, Any]) -> str:
    def fill(dsn: str) -> None:
        lab.say(f"{name}: making the crowded database …")
        ask(LIVEWELL, "install", dsn, **options)
        make(lab, dsn)

    return lab.server.template(name, fill)


def _line(
    name: str, title: str, make: Crowd, *, missing: Callable[[], str | None] = lambda: None, **options: Any
) -> Line[Lab]:
    def contenders(lab: Lab) -> Sequence[Contender]:
        jobs = lab.sizes.jobs
        return [
            Contender(
                "livewell",
                lambda: drain(lab.server, LIVEWELL, jobs=jobs, template=_template(lab, name, make, options)),
            ),
            # The same kind of queue: one with group limits is claimed in another way, crowded or
            # not.
            Contender(
                "unloaded",
                lambda: drain(lab.server, LIVEWELL, jobs=jobs, template=installed(lab.server, LIVEWELL, **options)),
            ),
        ]

    return Line(name, title, (Check(name, "jobs_per_second", 0.8, against="unloaded"),), contenders, missing)


LINES = (
    _line("other-queue", "drain with 500,000 jobs of another queue", _other_queue),
    _line("later", "drain with 500,000 delayed jobs", _later),
    _line("full-group", "drain with 200,000 in a full group", _full_group, missing=_no_group_limits, **_GROUP),
    _line("processed", "drain after 100,000 processed jobs", _processed),
    _line("in-flight", "drain with 10,000 in flight elsewhere", _in_flight),
)
