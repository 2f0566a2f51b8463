"""An idle worker, and a job now and then from another process.

From the moment its enqueuer knows that it is committed to the start of the handler.

Gaps are longer than the nudge interval (20 ms): every job finds everybody idle. Both processes read
the same machine's clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from bench.children import ask, crew
from bench.line import Check, Contender, Lab, Line
from bench.measure import Figures, installed
from bench.system import System

_GAP_SECONDS = (0.03, 0.06)
_SETTLE_SECONDS = 1.0
_WARM_UP = 10  # the first ones fill caches


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [_contender(lab, name) for name in ("livewell", *lab.found("pgqueuer", "graphile", "pgboss"))]


def _contender(lab: Lab, name: str) -> Contender:
    return Contender(name, lambda: _measure(lab, lab.system(name)), every_pair=name == "livewell")


def _measure(lab: Lab, system: System) -> Figures:
    jobs = lab.sizes.samples + _WARM_UP
    with (
        lab.server.database(installed(lab.server, system, note=True)) as database,
        crew(system, database.dsn, note=True) as worker,
    ):
        worker.go()
        time.sleep(_SETTLE_SECONDS)
        sent = ask(system, "send", database.dsn, jobs=jobs, gap_seconds=_GAP_SECONDS)["sent"]
        worker.until(jobs)
        starts = worker.stop()[0]["starts"]
    waits = [1000 * (starts[str(n)] - sent[str(n)]) for n in range(_WARM_UP, jobs)]
    cuts = statistics.quantiles(waits, n=100, method="inclusive")
    return {"p50_ms": cuts[49], "p95_ms": cuts[94], "p99_ms": cuts[98]}


LINES = (
    Line(
        "idle",
        "idle, commit to handler start, other process",
        (Check("idle/p50", "p50_ms", 1.5, at_most=True), Check("idle/p99", "p99_ms", 8.0, at_most=True)),
        _contenders,
    ),
)
