"""F-B14: many writers at once, while every enqueue of ours asks for a nudge.

Two kinds of writers: those that enqueue through the app, with and without nudges; and strangers
that insert into a table of their own (pgbench), beside an app that nudges all the time and beside
one that does not. A separate listener counts what was really sent. Phases alternate, so that a busy
machine slows both kinds alike.

Proven: with pg_notify inside the strangers' transactions their pace fell below the bound; with
nudge_ms = 1 more nudges were heard than allowed.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from livewell.db.listen import CHANNEL
from livewell.testing.processes import ChildFailed, ChildProcess
from tests.faults.database_support import Producer
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B14"
TITLE = "a storm of writers and nudges"

NUDGE_SECONDS = 0.02
RATIO_MIN = 0.6  # 0.9 is the promise, measured on a quiet machine; two busy cores lie more than that
STRANGERS = "INSERT INTO strangers (at) VALUES (clock_timestamp());\n"


async def run(scale: Scale) -> Findings:
    findings = Findings()
    writers, phase_seconds, pairs = scale.pick(32, 64), scale.pick(1, 10), scale.pick(2, 3)
    async with open_fleet(scale, worker_slots=20) as fleet, Producer(fleet, fleet.dsn, pool_size_max=writers) as ours:
        fleet.rows("CREATE TABLE strangers (at timestamptz NOT NULL)")
        await fleet.workers(1)
        heard, seconds = 0, 0.0
        ratios: dict[str, list[float]] = {"enqueues": [], "strangers": []}
        paces: dict[str, list[float]] = {}
        kinds: dict[str, Callable[[], Awaitable[float]]] = {
            "enqueues": lambda: _enqueue(ours, writers, phase_seconds * 0.7),
            "strangers": lambda: _insert(fleet, ours, scale.folder, writers, inserts=scale.pick(30, 800)),
        }
        for pair in range(pairs):
            for kind, write in kinds.items():
                if kind == "strangers" and _pgbench() is None:
                    continue
                pace = {}
                for nudging in (True, False) if pair % 2 else (False, True):
                    with_nudges(ours, nudging)
                    async with Ear(fleet.dsn) as ear:
                        pace[nudging] = await write()
                    paces.setdefault(f"{kind}_{'with' if nudging else 'without'}", []).append(pace[nudging])
                    heard, seconds = heard + ear.heard, seconds + ear.seconds
                    _check_heard(findings, ear, nudging=nudging)
                ratios[kind].append(pace[True] / max(pace[False], 1e-9))
        with_nudges(ours, True)
        findings.fired = heard
        await fleet.converge(findings, scale.pick(20, 300))
        for kind, seen in ratios.items():
            if seen:
                ratio = statistics.median(seen)
                findings.figures[f"ratio_{kind}"] = round(ratio, 3)
                # A pace is judged only in the campaign; in `make test` it is a figure.
                slow = scale.full and ratio < RATIO_MIN
                findings.check(not slow, f"{kind}: nudging left {ratio:.2f} of the writers' pace: {paces}")
        findings.figures |= {f"tps_{name}": round(statistics.median(seen)) for name, seen in paces.items()}
        findings.figures |= {"writers": writers, "nudges_heard": heard}
    return findings


class Ear:
    """A listener of nobody's: counts the nudges for our queue, and for how long it listened."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.heard = 0
        self.seconds = 0.0

    async def __aenter__(self) -> Ear:  # noqa: PYI034 - one class, no heirs
        self._connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        await self._connection.execute(f"LISTEN {CHANNEL}".encode())
        self._begun = time.monotonic()
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.05)  # the last one is on its way
        self.seconds = time.monotonic() - self._begun
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        await self._connection.close()

    async def _listen(self) -> None:
        async for note in self._connection.notifies():
            self.heard += note.payload == "work"


def _check_heard(findings: Findings, ear: Ear, *, nudging: bool) -> None:
    # The worker beside us may send one per interval as well, when it finds lost jobs: there are
    # none here.
    allowed = ear.seconds / NUDGE_SECONDS + 5 if nudging else 5
    findings.check(ear.heard <= allowed, f"{ear.heard} nudges in {ear.seconds:.1f} s; one per 20 ms is {allowed:.0f}")
    findings.check(not nudging or ear.heard > 0, "nobody nudged: the storm was none")


def with_nudges(producer: Producer, wanted: bool) -> None:
    """Let the app nudge, or not."""
    nudger = producer.app.nudger
    if wanted:
        for name in ("nudge", "ride"):
            nudger.__dict__.pop(name, None)
    else:
        for name in ("nudge", "ride"):
            nudger.__dict__[name] = lambda _name: None


async def _enqueue(producer: Producer, writers: int, seconds: float) -> float:
    """Enqueue one job per call from so many tasks; answers calls a second."""
    end, done = time.monotonic() + seconds, 0

    async def write() -> None:
        nonlocal done
        while time.monotonic() < end:
            await producer.app.enqueue("effect", key=0)
            done += 1

    begun = time.monotonic()
    await asyncio.gather(*(write() for _ in range(writers)))
    return done / (time.monotonic() - begun)


async def _insert(fleet: Fleet, producer: Producer, folder: Path, writers: int, *, inserts: int) -> float:
    """Strangers insert as fast as they can beside an app that enqueues steadily.

    Answers their transactions a second.
    """
    program = _pgbench()
    assert program is not None
    script = folder / "strangers.sql"
    await asyncio.to_thread(script.write_text, STRANGERS)
    parts = conninfo_to_dict(fleet.dsn)
    place = ["-h", parts["host"], "-p", parts["port"], "-U", parts["user"], parts["dbname"]]
    arguments = ["-n", "-M", "prepared", "-f", script, "-c", writers, "-j", 2, "-t", inserts, *place]
    beside = asyncio.create_task(_enqueue_steadily(producer))
    try:
        child = ChildProcess(
            [str(argument) for argument in arguments], program=program, env={"PGPASSWORD": str(parts["password"])}
        )
        with child:
            await asyncio.to_thread(child.wait, 120)
            pace = next((line.split()[2] for line in child.lines() if line.startswith("tps = ")), None)
            if pace is None:
                raise ChildFailed(child.describe())
    finally:
        beside.cancel()
        await asyncio.gather(beside, return_exceptions=True)
    return float(pace)


async def _enqueue_steadily(producer: Producer) -> None:
    """Two hundred a second, each asking for a nudge: fifty of them may be sent."""
    while True:
        await producer.app.enqueue("effect", key=0)
        await asyncio.sleep(0.005)


def _pgbench() -> Path | None:
    """Debian's, newest first."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"), reverse=True)
    return found[0] if found else None
