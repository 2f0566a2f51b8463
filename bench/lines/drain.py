"""Drain no-op jobs with one worker process, and with two."""

from __future__ import annotations

from collections.abc import Sequence

from bench.line import BEST, Check, Contender, Lab, Line
from bench.measure import Figures, drain

_WITH_WORKER = ("pgqueuer", "graphile", "pgboss")


def _one(lab: Lab) -> Sequence[Contender]:
    judged = ("livewell", *lab.found("graphile", "pgqueuer"))
    shown = lab.found("pgboss", "pgmq")
    return [_contender(lab, name, processes=1, every_pair=name in judged) for name in (*judged, *shown)]


def _two(lab: Lab) -> Sequence[Contender]:
    return [_contender(lab, name, processes=2) for name in ("livewell", *lab.found(*_WITH_WORKER))]


def _contender(lab: Lab, name: str, *, processes: int, every_pair: bool = True) -> Contender:
    def measure() -> Figures:
        return drain(lab.server, lab.system(name), jobs=lab.sizes.jobs, processes=processes)

    return Contender(name, measure, every_pair=every_pair)


LINES = (
    Line(
        "drain",
        "drain no-op jobs, one process",
        (
            Check("drain/graphile", "jobs_per_second", 1.3, against="graphile", goal=2.0),
            Check("drain/pgqueuer", "jobs_per_second", 3.0, against="pgqueuer"),
        ),
        _one,
    ),
    Line(
        "drain2",
        "drain no-op jobs, two processes",
        (Check("drain2", "jobs_per_second", 1.0, against=BEST, among=_WITH_WORKER),),
        _two,
    ),
)
