"""Enqueue one per commit, one after the other on one connection; and in bulk."""

from __future__ import annotations

from collections.abc import Sequence

from bench.children import ask
from bench.line import BEST, Check, Contender, Lab, Line
from bench.measure import Figures, installed

_PEERS = ("pgqueuer", "graphile", "pgboss", "pgmq")


def _singles(lab: Lab) -> Sequence[Contender]:
    return [
        _contender(lab, name, "one", lab.sizes.singles, every_pair=True) for name in ("livewell", *lab.found(*_PEERS))
    ]


def _bulk(lab: Lab) -> Sequence[Contender]:
    names = ("livewell", *lab.found(*_PEERS))
    return [_contender(lab, name, "fill", lab.sizes.bulk, every_pair=name == "livewell") for name in names]


def _contender(lab: Lab, name: str, verb: str, jobs: int, *, every_pair: bool) -> Contender:
    def measure() -> Figures:
        system = lab.system(name)
        with lab.server.database(installed(lab.server, system)) as database:
            before = database.read()
            pace = ask(system, verb, database.dsn, jobs=jobs)["jobs_per_second"]
            after = database.read()
        return {
            "jobs_per_second": pace,
            "wal_bytes_per_job": (after.wal_bytes - before.wal_bytes) / jobs,
            "calls_per_job": (after.calls - before.calls) / jobs,
        }

    return Contender(name, measure, every_pair=every_pair)


LINES = (
    Line(
        "enqueue",
        "enqueue, one per commit",
        (Check("enqueue", "jobs_per_second", 1.0, against=BEST, among=_PEERS),),
        _singles,
    ),
    Line("bulk", "enqueue in bulk", (Check("bulk", "jobs_per_second", 100_000.0),), _bulk),
)
