"""WAL of a whole job life: insert, claim, finish and the history row.

All that the server writes meanwhile is counted, full pages and autovacuum too.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.line import Check, Contender, Lab, Line
from bench.measure import Figures, drain

_PEERS = ("pgqueuer", "graphile", "pgboss", "pgmq")


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [_contender(lab, name) for name in ("livewell", *lab.found(*_PEERS))]


def _contender(lab: Lab, name: str) -> Contender:
    def measure() -> Figures:
        figures = drain(lab.server, lab.system(name), jobs=lab.sizes.jobs)
        return {key: figures[key] for key in ("wal_bytes_per_life", "wal_bytes_per_job", "calls_per_job")}

    return Contender(name, measure, every_pair=name == "livewell")


LINES = (Line("wal", "WAL of a job's life", (Check("wal", "wal_bytes_per_life", 850.0, at_most=True),), _contenders),)
