"""The lines of the push benchmark."""

from __future__ import annotations

import statistics
import time

from bench.children import Child, ask
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.push.lab import SYSTEM, Lab, Served, served
from bench.refresh.lab import SYSTEM as WORKER

_GAP_SECONDS = (0.03, 0.06)  # longer than the nudge interval
_WARM_UP = 10
_FLAT = 1.1  # of the memory after a fifth of the time
SEND_SECONDS = 10.0


def _latency(lab: Lab) -> Figures:
    samples = lab.sizes.samples + _WARM_UP
    with (
        lab.refresh.simulator(symbols=samples) as simulator,
        lab.refresh.database(simulator) as database,
        served(database, "view", "subscribe", "operate") as running,
        Child(WORKER, "work", database.dsn, {}) as worker,
    ):
        worker.wait_ready()
        worker.tell("go")
        told = ask(
            SYSTEM,
            "subscribe",
            database.dsn,
            base=running.base,
            key=running.key,
            samples=samples,
            gap_seconds=_GAP_SECONDS,
        )
        worker.tell("stop")
        worker.answer()
    waits, answers = told["samples"][_WARM_UP:], told["answers"][_WARM_UP:]
    cuts = statistics.quantiles(waits, n=100, method="inclusive") if len(waits) > 1 else waits * 99
    return {
        "p50_ms": cuts[49],
        "p99_ms": cuts[98],
        "fastest_ms": min(waits),
        "slowest_ms": max(waits),
        "stage_answer_ms": statistics.median(answers),
    }


def _options(lab: Lab, running: Served) -> dict[str, object]:
    return {"base": running.base, "key": running.key, "keys": lab.sizes.keys, "streams": lab.sizes.streams}


def _fan_out(lab: Lab) -> Figures:
    seconds = lab.sizes.fan_out_seconds
    with (
        lab.crowd(streams=lab.sizes.streams) as running,
        Child(SYSTEM, "fan_out", running.database.dsn, {**_options(lab, running), "seconds": seconds}) as clients,
    ):
        clients.wait_ready()
        clients.tell("go")
        time.sleep(seconds / 5)
        early = running.rss_mb()
        time.sleep(seconds * 4 / 5)
        told = clients.answer()
        late = running.rss_mb()
        running.process.tell("stop")
        cpu = running.process.answer()["cpu_seconds"]
    return {**told, "rss_mb": late, "memory_growth": late / early, "server_cpu_seconds": cpu}


def _silent(lab: Lab) -> Figures:
    sizes = lab.sizes
    with lab.crowd(streams=sizes.streams, silent=sizes.silent) as running:
        told = ask(
            SYSTEM,
            "silent",
            running.database.dsn,
            **_options(lab, running),
            silent=sizes.silent,
            seconds=sizes.silent_seconds,
        )
        rss = running.rss_mb()
    return {
        **told,
        "left": sizes.silent - told["dropped"],
        "ratio_to_before": told["p99_ms"] / told["p99_before_ms"],
        "rss_mb": rss,
    }


def _storm(lab: Lab) -> Figures:
    with (
        lab.crowd(streams=lab.sizes.streams) as running,
        Child(SYSTEM, "storm", running.database.dsn, _options(lab, running)) as clients,
    ):
        clients.wait_ready()
        before = running.database.read()
        clients.tell("go")
        told = clients.answer()
        after = running.database.read()
    return {**told, "queries_per_client": (after.calls - before.calls) / lab.sizes.streams}


LINES: tuple[Line[Lab], ...] = (
    Line(
        "subscribe",
        "subscribe over HTTP to the value on the stream, idle",
        (Check("subscribe/p50", "p50_ms", 50.0, at_most=True), Check("subscribe/p99", "p99_ms", 200.0, at_most=True)),
        lambda lab: [Contender("livewell", lambda: _latency(lab))],
    ),
    Line(
        "fan-out",
        "2,000 streams of 50 keys, 100 changes a second",
        (
            Check("fan-out/p99", "p99_ms", 1000.0, at_most=True),
            Check("fan-out/memory", "memory_growth", _FLAT, at_most=True),
            Check("fan-out/wrong", "wrong", 0.0, at_most=True, never=True),
        ),
        lambda lab: [Contender("livewell", lambda: _fan_out(lab))],
    ),
    Line(
        "silent",
        "200 clients that never read",
        (
            Check("silent/left", "left", 0.0, at_most=True, never=True),
            Check("silent/held", "held_seconds", SEND_SECONDS + 2, at_most=True),
            Check("silent/healthy", "ratio_to_before", 2.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _silent(lab))],
    ),
    Line(
        "storm",
        "2,000 clients come back at once",
        (
            Check("storm/seconds", "seconds", 10.0, at_most=True),
            Check("storm/queries", "queries_per_client", 2.0, at_most=True),
        ),
        lambda lab: [Contender("livewell", lambda: _storm(lab))],
    ),
)
