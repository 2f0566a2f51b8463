"""From the call of app.watch, for a key that nobody knows, to its value seen there.

Watcher, worker, simulator and Postgres are processes of their own, and idle before each sample.

The stages are told apart by stamps that all are of this machine's clock: the watcher's own, the
job's row, the simulator's log.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from bench.children import Child, ChildFailed, ask
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.refresh.lab import SYSTEM, Lab, symbols
from livewell.apps.market.simulator.oracle.log import read_events

_GAP_SECONDS = (0.03, 0.06)  # longer than the nudge interval
_WARM_UP = 10
_STAGES = ("subscribe", "dispatch", "claim", "call", "store", "see")
_JOBS = (
    "SELECT extract(epoch FROM created_at)::float8, extract(epoch FROM started_at)::float8, extract(epoch FROM "
    "finished_at)::float8 FROM livewell.job_history ORDER BY created_at"
)


def _measure(lab: Lab) -> Figures:
    keys = symbols(lab.sizes.samples + _WARM_UP)
    with (
        lab.simulator(symbols=len(keys)) as simulator,
        lab.database(simulator) as database,
        Child(SYSTEM, "work", database.dsn, {}) as worker,
    ):
        worker.wait_ready()
        worker.tell("go")
        samples = ask(SYSTEM, "watch", database.dsn, symbols=len(keys), gap_seconds=_GAP_SECONDS)["samples"]
        worker.tell("stop")
        worker.answer()
        with psycopg.connect(database.dsn) as connection:
            jobs = connection.execute(_JOBS).fetchall()
        received = _received(simulator.log)
    if len(jobs) != len(samples):
        raise ChildFailed(f"bench: {len(jobs)} jobs for {len(samples)} keys")
    waits = [1000 * (sample["seen"] - sample["asked"]) for sample in samples[_WARM_UP:]]
    cuts = statistics.quantiles(waits, n=100, method="inclusive") if len(waits) > 1 else waits * 99
    stages = [_stages(sample, job, received) for sample, job in zip(samples, jobs, strict=True)][_WARM_UP:]
    return {"p50_ms": cuts[49], "p99_ms": cuts[98], "fastest_ms": min(waits), "slowest_ms": max(waits)} | {
        f"stage_{name}_ms": statistics.median(one[place] for one in stages) for place, name in enumerate(_STAGES)
    }


def _received(log: Path) -> dict[str, float]:
    return {event["keys"][0]: event["wall"] for event in read_events(log) if event["event"] == "call"}


def _stages(sample: dict[str, Any], job: tuple[Any, ...], received: dict[str, float]) -> list[float]:
    """Milliseconds from each stamp to the next.

    One after the other, so the jobs are in the order of the samples.
    """
    stamps = [sample["asked"], sample["subscribed"], job[0], job[1], received[sample["key"]], job[2], sample["seen"]]
    return [1000 * (after - before) for before, after in itertools.pairwise(stamps)]


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [Contender("livewell", lambda: _measure(lab))]


LINES = (
    Line(
        "latency",
        "subscribe to value seen by app.watch, idle",
        (Check("latency/p50", "p50_ms", 30.0, at_most=True), Check("latency/p99", "p99_ms", 150.0, at_most=True)),
        _contenders,
    ),
)
