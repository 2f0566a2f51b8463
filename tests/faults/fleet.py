"""A fleet: one migrated database of its own, one log outside it, and worker processes to be killed, frozen and starved.

    async with open_fleet(scale) as fleet:
        workers = await fleet.workers(2, lease_seconds=2)       any setting, as a keyword; database_url too (a proxy, a pooler)
        await fleet.enqueue("effect", 500, seconds=0.01)        tasks: see fleet_app
        workers[0].kill()
        await fleet.converge(20)                                liveness: everything is done within so many seconds
        fleet.audit(findings)                                   safety: nothing lost, nothing doubled

Two oracles, neither of them ours: the log that handlers append to (runs) and the table `effect`,
which has no unique key, so a doubled effect shows.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
from pydantic import SecretStr

import livewell
from livewell.app import Livewell
from livewell.db import scratch
from livewell.settings import Settings
from livewell.testing.history import AppendLog
from livewell.testing.processes import ChildProcess
from tests.faults.fleet_app import LOG, app
from tests.faults.scenario import Findings, Scale

COMMAND = ("-m", "livewell.cli", "worker", "tests.faults.fleet_app:app")
ROOT = Path(__file__).parents[2]
WRITERS = ("effect", "gated", "stubborn")  # tasks that write an effect
START_SECONDS_MAX = (
    60.0  # a Python process with all imports takes 1 s alone, and many times that when 50 start on 2 cores
)
EFFECTS = (
    "CREATE TABLE public.effect (key bigint NOT NULL, fence bigint NOT NULL, pid integer NOT NULL, at "
    "timestamptz NOT NULL DEFAULT clock_timestamp())"
)

# Leases as short as a busy machine with two cores keeps; a scenario gives others as keywords.
QUICK: dict[str, object] = {
    "lease_seconds": 1,
    "heartbeat_seconds": 0.1,
    "poll_seconds": 0.1,
    "maintain_seconds": 0.1,
    "deadline_grace_seconds": 0.3,
    "grace_seconds": 5,
    "listen_check_seconds": 1,
    "worker_slots": 8,
    "pool_size_max": 4,
    "log_level": "info",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log."""

    event: str
    key: int
    pid: int
    at: float  # time.monotonic(), the same for every process of this machine


@dataclass(slots=True)
class Tally:
    """What became of the jobs of a fleet, counted from outside."""

    jobs: int = 0
    lost: int = 0  # neither an effect (a plain job: no successful end) nor a dead letter
    doubled: int = 0  # more than one effect, or more than one end
    dead: int = 0
    runs: int = 0
    repeated: int = 0  # runs beyond the first of a job


class Worker:
    """One worker process."""

    def __init__(self, child: ChildProcess) -> None:
        self.child = child
        self.begun = time.monotonic()

    @property
    def pid(self) -> int:
        """Its process number: the third word of its lines in the log."""
        return self.child.pid

    @property
    def alive(self) -> bool:
        """Whether the process still exists; a frozen one does."""
        return self.child.returncode is None

    async def started(self, seconds: float = START_SECONDS_MAX) -> int:
        """Wait until it has registered; answers its first incarnation."""
        line = await asyncio.to_thread(self.child.wait_for, "worker started", seconds)
        return int(line.split("worker=")[1].split()[0])

    async def said(self, text: str, seconds: float = 10.0, *, since: int = 0) -> str:
        """Wait until it logs a line with this text."""
        return await asyncio.to_thread(self.child.wait_for, text, seconds, since=since)

    async def ended(self, seconds: float = 20.0) -> int:
        """Wait for its end.

        Answers the exit code (minus the signal's number when a signal ended it).
        """
        return await asyncio.to_thread(self.child.wait, seconds)

    def kill(self) -> float:
        """SIGKILL; answers the monotonic instant."""
        self.child.kill()
        return time.monotonic()

    def freeze(self) -> float:
        """SIGSTOP; answers the monotonic instant at which it stands still."""
        self.child.freeze()
        return time.monotonic()

    def thaw(self) -> float:
        """SIGCONT; answers the monotonic instant before it."""
        now = time.monotonic()
        self.child.thaw()
        return now

    def terminate(self) -> float:
        """SIGTERM; answers the monotonic instant before it."""
        now = time.monotonic()
        self.child.terminate()
        return now

    def interrupt(self) -> float:
        """SIGINT; answers the monotonic instant before it."""
        now = time.monotonic()
        self.child.interrupt()
        return now


@dataclass(slots=True)
class Fleet:
    """The database, the log, the jobs asked for and the workers of one scenario."""

    dsn: str  # the direct address
    log: AppendLog
    app: Livewell
    settings: dict[str, object]
    children: list[Worker] = field(default_factory=list)
    jobs: dict[int, int] = field(default_factory=dict)  # key → job id
    tasks: dict[int, str] = field(default_factory=dict)  # key → task
    _connection: psycopg.Connection[tuple[Any, ...]] | None = None

    # ── workers ──

    def start(
        self, *, env: dict[str, str] | None = None, command: Sequence[str] = COMMAND, **settings: object
    ) -> Worker:
        """Start a worker process and return at once; settings are added to those of the fleet."""
        given = {"database_url": self.dsn, **self.settings, **settings}
        child = ChildProcess(
            command,
            cwd=ROOT,
            env={
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(livewell.__file__).parents[1])]),
                LOG: str(self.log.path),
                **{f"LIVEWELL_{name.upper()}": str(value) for name, value in given.items()},
                **(env or {}),
            },
        ).start()
        self.children.append(Worker(child))
        return self.children[-1]

    async def workers(
        self, n: int, *, env: dict[str, str] | None = None, command: Sequence[str] = COMMAND, **settings: object
    ) -> list[Worker]:
        """Start n worker processes and wait until each has registered."""
        started = [self.start(env=env, command=command, **settings) for _ in range(n)]
        await asyncio.gather(*(worker.started() for worker in started))
        return started

    # ── jobs ──

    async def enqueue(self, task: str, n: int = 1, **arguments: object) -> list[int]:
        """Enqueue n jobs with keys of their own; answers the keys.

        They are counted as asked for once this returns.
        """
        first = len(self.jobs) + 1
        keys = list(range(first, first + n))
        answers = await self.app._handles[task].enqueue_many([{"key": key, **arguments} for key in keys])
        self.jobs.update(zip(keys, (answer.id for answer in answers), strict=True))
        self.tasks.update(dict.fromkeys(keys, task))
        return keys

    def open_gate(self) -> None:
        """Let the `gated` jobs end, those that run and those that come."""
        Path(f"{self.log.path}.gate").touch()

    def shut_gate(self) -> None:
        """Let `gated` jobs that begin from now on wait again."""
        Path(f"{self.log.path}.gate").unlink(missing_ok=True)

    # ── what is seen from outside ──

    def rows(self, query: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Ask the database directly, past the product, any proxy and any pooler.

        Reconnects once.
        """
        try:
            return self._ask(query, params)
        except psycopg.OperationalError:
            self._connection = None
            return self._ask(query, params)

    def value(self, query: str, params: Sequence[Any] = ()) -> Any:
        """The first column of the first row."""
        return self.rows(query, params)[0][0]

    def events(self) -> list[Event]:
        """The log so far, in order."""
        words = (line.split() for line in self.log.read())
        return [Event(event, int(key), int(pid), float(at)) for event, key, pid, at in words]

    def effects(self) -> Counter[int]:
        """How many effects each key has."""
        return Counter(dict(self.rows("SELECT key, count(*)::integer FROM public.effect GROUP BY key")))

    def live(self) -> int:
        """Jobs that are not yet finished, dead or cancelled."""
        return int(self.value("SELECT count(*) FROM livewell.job"))

    async def until(self, holds: str, seconds: float, params: Sequence[Any] = ()) -> float | None:
        """Wait until a query answers true.

        Answers the seconds it took, or None when it did not in time.
        """
        begun = time.monotonic()
        while not self.value(f"SELECT {holds}", params):
            if time.monotonic() - begun > seconds:
                return None
            await asyncio.sleep(0.02)
        return time.monotonic() - begun

    async def until_event(self, event: str, keys: Iterable[int], seconds: float = 20.0) -> float | None:
        """Wait until the log has such a line for each of these keys.

        Answers the seconds it took, or None.
        """
        wanted, begun = set(keys), time.monotonic()
        while not wanted <= {line.key for line in self.events() if line.event == event}:
            if time.monotonic() - begun > seconds:
                return None
            await asyncio.sleep(0.02)
        return time.monotonic() - begun

    async def converge(self, findings: Findings, seconds: float) -> float | None:
        """Liveness: demand that no live job is left within so many seconds.

        Answers how long it took.
        """
        took = await self.until("NOT EXISTS (SELECT FROM livewell.job)", seconds)
        if took is None:
            left = self.rows(
                "SELECT kind, state::text, lost, count(*)::integer FROM livewell.job GROUP BY 1, 2, 3 LIMIT 5"
            )
            findings.check(False, f"not done {seconds:g} s after the last fault: {self.live()} jobs are left: {left}")
            for worker in self.children:
                findings.check(False, worker.child.describe(12))
        return took

    def audit(self, findings: Findings, *, dead: Iterable[int] = ()) -> Tally:
        """Safety: every job ended exactly once, with exactly one effect if it writes effects.

        Only the given keys may (and must) be dead letters.
        """
        expected_dead = set(dead)
        effects, tally = self.effects(), Tally(jobs=len(self.jobs))
        ends = Counter(
            dict(
                self.rows(
                    "SELECT id, count(*)::integer FROM livewell.job_history WHERE outcome = 'succeeded' GROUP BY id"
                )
            )
        )
        buried = {job for (job,) in self.rows("SELECT id FROM livewell.dead_job")}
        starts = Counter(line.key for line in self.events() if line.event == "start")
        for key, job in self.jobs.items():
            is_dead = job in buried
            tally.dead += is_dead
            findings.check(
                is_dead == (key in expected_dead), f"{self._name(key)} is {'' if is_dead else 'not '}a dead letter"
            )
            counts = {"end": ends[job]} | ({"effect": effects[key]} if self.tasks[key] in WRITERS else {})
            wanted = 0 if is_dead else 1
            tally.lost += min(counts.values()) < wanted
            tally.doubled += max(counts.values()) > wanted
            findings.check(
                set(counts.values()) == {wanted}, f"{self._name(key)} ended with {counts}, {wanted} of each is right"
            )
            findings.check(starts[key] > 0, f"{self._name(key)} never ran")
            tally.runs += starts[key]
            tally.repeated += max(0, starts[key] - 1)
        strangers = set(effects) - set(self.jobs)
        findings.check(not strangers, f"{len(strangers)} effects of jobs nobody enqueued")
        return tally

    def overlaps(self) -> list[tuple[int, int, int]]:
        """Keys that two processes ran at the same time: (key, pid, pid).

        A run whose end is not in the log ended with its process, unknown when: it is left out.
        """
        open_runs: dict[tuple[int, int], float] = {}
        runs: defaultdict[int, list[tuple[float, float, int]]] = defaultdict(list)
        for line in self.events():
            if line.event == "start":
                open_runs[line.key, line.pid] = line.at
            elif line.event in ("done", "fenced", "stopped", "failed") and (line.key, line.pid) in open_runs:
                runs[line.key].append((open_runs.pop((line.key, line.pid)), line.at, line.pid))
        found = []
        for key, intervals in runs.items():
            intervals.sort()
            found += [(key, one[2], two[2]) for one, two in pairwise(intervals) if two[0] < one[1]]
        return found

    # ── inside ──

    def close(self) -> None:
        """Kill what lives and let go of the connection."""
        for worker in self.children:
            worker.child.close()
        if self._connection is not None:
            self._connection.close()

    def _ask(self, query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.dsn, autocommit=True, application_name="fleet", connect_timeout=10)
        cursor = self._connection.execute(query.encode(), params)
        return cursor.fetchall() if cursor.description else []

    def _name(self, key: int) -> str:
        return f"{self.tasks[key]} {key} (job {self.jobs[key]})"


@asynccontextmanager
async def open_fleet(scale: Scale, **settings: object) -> AsyncIterator[Fleet]:
    """A fleet on a fresh database of scale.server, gone afterwards.

    Settings are those of every worker, and of the app that enqueues.
    """
    template = await asyncio.to_thread(make_template, scale.server)
    name = f"livewell_fleet_{secrets.token_hex(6)}"
    dsn = await asyncio.to_thread(scratch.clone, scale.server, template, name)
    given = {**QUICK, **settings}
    fleet = Fleet(dsn, AppendLog(scale.folder / f"runs-{secrets.token_hex(4)}.log"), app, given)
    try:
        fleet.rows(EFFECTS)
        await app.open(settings=Settings.model_validate({"database_url": SecretStr(dsn), **given}))
        yield fleet
    finally:
        with suppress(psycopg.Error):
            await app.close()
        await asyncio.to_thread(fleet.close)
        with suppress(psycopg.Error):
            await asyncio.to_thread(scratch.drop, scale.server, name)


def make_template(server: str) -> str:
    """The name of a migrated template database on this server.

    Named after the SQL, so a changed schema gets a new one.
    """
    folder = Path(livewell.__file__).parent
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.sql")))).hexdigest()[:12]
    name = f"livewell_fleet_template_{digest}"
    scratch.make_template(server, name)
    return name
