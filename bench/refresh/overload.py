"""More is due than the limit allows.

Three worker processes, and the one that does the due check is killed half-way. Counted in the
simulator's own log.

The limits are those of the shipped upstream, 300 calls a minute; a key lives a minute, so 10,000
watched ones want 33 times as much. Use is all calls from the first one on, of what the limit allows
in that time; the start and the death are in it. Measured once, for it takes five minutes.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Sequence

import psycopg

from bench.children import Child, ChildFailed
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.refresh.crowd import watch_all
from bench.refresh.lab import FMP_LIMITS, SYSTEM, TYPE, Lab, symbols
from livewell.apps.market.simulator.oracle.judge import calls, calls_above_limit
from livewell.apps.market.simulator.simulator import Simulator
from livewell.testing.call_windows import busiest_window, overlaps

_CALLS, _WINDOW_SECONDS = 300, 60.0
_WORKERS = 3
_START_SECONDS_MAX = 60.0
_LATENCY_SECONDS = 0.05


def _measure(lab: Lab) -> Figures:
    keys = symbols(max(100, lab.sizes.overload_keys))
    with contextlib.ExitStack() as stack:
        simulator = stack.enter_context(lab.simulator(symbols=len(keys), latency_seconds=_LATENCY_SECONDS))
        database = stack.enter_context(lab.database(simulator, limits=FMP_LIMITS, ttl="1m"))
        watch_all(database.dsn, keys, TYPE)
        workers = [stack.enter_context(Child(SYSTEM, "work", database.dsn, {})) for _ in range(_WORKERS)]
        for worker in workers:
            worker.wait_ready()
        for worker in workers:
            worker.tell("go")
        _first_call(simulator)
        time.sleep(lab.sizes.overload_seconds / 2)
        killed = _kill_the_holder(database.dsn, workers)
        time.sleep(lab.sizes.overload_seconds / 2)
        ended_ns = time.monotonic_ns()
        for worker in workers:
            if worker is not killed:
                worker.tell("stop")
        for worker in workers:
            if worker is not killed:
                worker.answer()
        every = calls(simulator.log)
        above = calls_above_limit(simulator.log, _CALLS, _WINDOW_SECONDS)
    counted = [call for call in every if call.at_ns <= ended_ns]
    span_seconds = (ended_ns - counted[0].at_ns) / 1e9
    together = overlaps(every)
    return {
        "percent_of_limit": 100 * len(counted) / (_CALLS / _WINDOW_SECONDS * span_seconds),
        "calls_above_limit": above,
        "calls": len(counted),
        "busiest_window_calls": busiest_window(every, _WINDOW_SECONDS).calls,
        "longest_pause_ms": max((b.at_ns - a.at_ns) / 1e6 for a, b in itertools.pairwise(counted)),
        "at_once": together.total,
        "at_once_for_one_key": max(together.per_key.values()),
        "seconds": span_seconds,
    }


def _first_call(simulator: Simulator) -> None:
    give_up = time.monotonic() + _START_SECONDS_MAX
    while not calls(simulator.log):
        if time.monotonic() > give_up:
            raise ChildFailed(f"bench: no call was made within {_START_SECONDS_MAX:.0f} s")
        time.sleep(0.05)


def _kill_the_holder(dsn: str, workers: Sequence[Child]) -> Child:
    """The worst one to lose: until its term is over, nobody turns what is due into jobs."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT holder FROM livewell.singleton WHERE name = 'refresh.due'").fetchone()
    holder = "" if row is None else row[0]
    chosen = next((worker for worker in workers if holder.endswith(f":{worker.pid}")), None)
    if chosen is None:
        raise ChildFailed(f"bench: {holder!r} holds the due check, and none of our workers is it")
    chosen.kill()
    return chosen


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [Contender("livewell", lambda: _measure(lab), every_pair=False)]


LINES = (
    Line(
        "overload",
        "use of 300 calls a minute, 3 workers, one killed",
        (
            Check("overload/use", "percent_of_limit", 94.0),
            Check("overload/above", "calls_above_limit", 0, at_most=True, never=True),
        ),
        _contenders,
    ),
)
