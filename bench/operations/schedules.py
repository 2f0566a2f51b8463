"""The lines about schedules.

How long after its slot a run begins, and what a frozen scheduler costs.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.children import Child, ChildFailed
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.operations.lab import SYSTEM, Lab
from livewell.testing.history import AppendLog

_JITTER_EVERY_SECONDS = 0.25
_FROZEN_EVERY_SECONDS = 0.1
_LEASE_SECONDS = 2.0
_WARM_UP = 4  # slots: the first ones are begun while the worker starts
_BEFORE_SHARE = 0.2  # of the slots, before one scheduler is frozen
_SECONDS_MAX = 300.0

Started = tuple[float, float, int]  # slot, start, process


def _started(log: Path) -> list[Started]:
    """What handlers wrote down."""
    words = [line.split() for line in AppendLog(log).read()]
    return [(float(slot), float(at), int(pid)) for slot, at, pid in words]


def _wait(what: str, reached: Callable[[], object], *children: Child) -> None:
    give_up = time.monotonic() + _SECONDS_MAX
    while not reached():
        for child in children:
            child.check()
        if time.monotonic() > give_up:
            raise ChildFailed(f"bench: {what} did not happen within {_SECONDS_MAX:.0f} s")
        time.sleep(0.01)


def _options(lab: Lab, log: Path, **more: Any) -> dict[str, Any]:
    return {"log": str(log), "hold": str(lab.file("hold")), **more}


def _jitter(lab: Lab) -> Figures:
    log, slots = lab.file("log"), lab.sizes.jitter_slots + _WARM_UP
    options = _options(lab, log, every_seconds=_JITTER_EVERY_SECONDS, lease_seconds=45)
    with lab.database() as database, Child(SYSTEM, "work", database.dsn, options) as worker:
        worker.wait_ready()
        worker.tell("go")
        _wait("the last slot", lambda: len(_started(log)) >= slots, worker)
        worker.tell("stop")
        worker.answer()
    late = [(at - slot) * 1000 for slot, at, _ in _started(log)[_WARM_UP:slots]]
    cuts = statistics.quantiles(late, n=100, method="inclusive") if len(late) > 1 else late * 99
    return {
        "p50_ms": cuts[49],
        "p99_ms": cuts[98],
        "earliest_ms": min(late),
        "latest_ms": max(late),
        "slots": len(late),
    }


def _frozen(lab: Lab) -> Figures:
    """One of two is stopped in the middle of a run, for longer than its lease, and goes on then."""
    log, slots = lab.file("log"), lab.sizes.frozen_slots
    given = [_options(lab, log, every_seconds=_FROZEN_EVERY_SECONDS, lease_seconds=_LEASE_SECONDS) for _ in range(2)]
    with (
        lab.database() as database,
        Child(SYSTEM, "work", database.dsn, given[0]) as victim,
        Child(SYSTEM, "work", database.dsn, given[1]) as other,
    ):
        for child in (victim, other):
            child.wait_ready()
        for child in (victim, other):
            child.tell("go")
        _wait("the first slots", lambda: len(_started(log)) >= slots * _BEFORE_SHARE, victim, other)
        frozen_at = _freeze(victim, Path(given[0]["hold"]), log, other)
        _wait("the takeover", lambda: any(at > frozen_at for _, at, _ in _started(log)), other)
        time.sleep(max(0.0, frozen_at + _LEASE_SECONDS * 1.5 - time.time()))
        os.kill(victim.pid, signal.SIGCONT)
        _wait("the last slot", lambda: len(_started(log)) >= slots, victim, other)
        for child in (victim, other):
            child.tell("stop")
        for child in (victim, other):
            child.answer()
    return _judge(_started(log), frozen_at)


def _freeze(victim: Child, hold: Path, log: Path, other: Child) -> float:
    """Stop it while it is in a run; answers when."""
    before = len(_started(log))
    hold.touch()
    _wait(
        "a run of the first scheduler", lambda: any(p == victim.pid for *_, p in _started(log)[before:]), victim, other
    )
    os.kill(victim.pid, signal.SIGSTOP)
    at = time.time()
    hold.unlink()
    return at


def _judge(started: list[Started], frozen_at: float) -> Figures:
    times = Counter(round(slot, 3) for slot, *_ in started)
    slots = sorted(times)
    steps = [round((b - a) / _FROZEN_EVERY_SECONDS) for a, b in pairwise(slots)]
    return {
        "slots": len(slots),
        "twice": sum(n - 1 for n in times.values()),
        "missing": sum(step - 1 for step in steps),
        "gap_seconds": min(at for _, at, _ in started if at > frozen_at) - frozen_at,
        "by_the_first": Counter(pid for *_, pid in started).most_common()[-1][1],
    }


LINES: tuple[Line[Lab], ...] = (
    Line(
        "jitter",
        "schedule tick jitter, idle",
        (Check("jitter/p99", "p99_ms", 250.0, at_most=True),),
        lambda lab: [Contender("livewell", lambda: _jitter(lab))],
    ),
    Line(
        "frozen",
        "two schedulers, one frozen beyond its lease",
        (
            Check("frozen/twice", "twice", 0.0, at_most=True, never=True),
            Check("frozen/missing", "missing", 0.0, at_most=True, never=True),
            Check("frozen/gap", "gap_seconds", _LEASE_SECONDS, at_most=True, never=True),
        ),
        lambda lab: [Contender("livewell", lambda: _frozen(lab))],
    ),
)
