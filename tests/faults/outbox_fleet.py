"""Emitters, relays and a receiver, each to be killed, frozen or silenced, and the judge of it all.

    async with open_outbox(scale) as fleet:
        relays = await fleet.relays(4)
        async with fleet.emitting(6):
            fleet.kill(relays[0]) …
        await fleet.converge(findings, 30)
        fleet.audit(findings)

Three oracles: what the emitters were told is committed, the table of events, and the receiver's
log. A sequence number in the payload is counted by the emitter, key by key, in the order of its
commits; Livewell's own numbers judge nothing.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from pydantic import SecretStr

import livewell
from livewell.app import Livewell
from livewell.db import scratch
from livewell.settings import Settings
from livewell.testing.history import AppendLog
from livewell.testing.processes import ChildProcess, free_port
from tests.faults.outbox_relay import TOPIC, declare
from tests.faults.scenario import Findings, Scale

ROOT = Path(__file__).parents[2]
EMIT = "SELECT livewell.emit_event(%s, %s::json, %s, %s)"
START_SECONDS_MAX = 60.0
KEYS = 5  # of each emitter

QUICK: dict[str, object] = {
    "lease_seconds": 3,
    "heartbeat_seconds": 0.2,
    "poll_seconds": 0.1,
    "stat_seconds": 1,
    "pool_size_max": 3,
    "log_level": "warning",
}


@dataclass(frozen=True, slots=True)
class Received:
    """One line of the receiver's log."""

    id: str
    tenant: str
    key: str
    seq: int
    pid: int


@dataclass(slots=True)
class OutboxFleet:
    """One database, one receiver, any number of relays."""

    dsn: str
    log: AppendLog
    port: int
    chance: Random
    settings: dict[str, object]
    children: list[ChildProcess] = field(default_factory=list)
    receiver: ChildProcess | None = None
    acknowledged: set[str] = field(default_factory=set)  # ids that an emitter was told are committed
    undone: set[str] = field(default_factory=set)  # ids of transactions that were rolled back
    in_flight: Counter[str] = field(default_factory=Counter)  # ids that a fault caught on their way
    unknown: int = 0
    _connection: psycopg.Connection[tuple[Any, ...]] | None = None

    # ── processes ──

    def _child(self, module: str, *arguments: object) -> ChildProcess:
        given = {"database_url": self.dsn, **self.settings}
        child = ChildProcess(
            ["-m", f"tests.faults.{module}", *map(str, arguments)],
            cwd=ROOT,
            env={
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(livewell.__file__).parents[1])]),
                **{f"LIVEWELL_{name.upper()}": str(value) for name, value in given.items()},
            },
        ).start()
        self.children.append(child)
        return child

    async def relays(self, n: int) -> list[ChildProcess]:
        """Start so many, and wait until they relay."""
        started = [self._child("outbox_relay", self.port) for _ in range(n)]
        for child in started:
            await asyncio.to_thread(child.wait_for, "relaying", START_SECONDS_MAX)
        return started

    async def receive(self) -> None:
        """Start the receiver, on the port it always has."""
        self.receiver = self._child("outbox_receiver", self.port, self.log.path)
        await asyncio.to_thread(self.receiver.wait_for, "receiving", START_SECONDS_MAX)

    async def restart_receiver(self) -> None:
        """Kill it; whatever was on its way may come twice."""
        assert self.receiver is not None
        self.receiver.kill()
        self.catch()
        await asyncio.to_thread(self.receiver.wait, 20)
        await self.receive()

    def go_away(self) -> None:
        """Let the receiver hang up on whoever asks, from its next start on."""
        Path(f"{self.log.path}.down").touch()

    def come_back(self) -> None:
        """Let it take events again."""
        Path(f"{self.log.path}.down").unlink()

    async def arrives(self, key: str, n: int = 1, *, seconds: float = 20) -> bool:
        """Wait until so many events of a key were received; false if they were not in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if sum(one.key == key for one in self.received()) >= n:
                return True
            await asyncio.sleep(0.02)
        return False

    def catch(self, *pids: int) -> None:
        """Remember what is in flight now, of these processes or of all: it may arrive once more."""
        names = [f"relay {pid}" for pid in pids]
        found = self.rows(
            "SELECT livewell.event_id(n) FROM livewell.event_flight f JOIN livewell.relay r ON r.id = f.relay "
            "CROSS JOIN unnest(f.numbers) AS n WHERE cardinality(%s::text[]) = 0 OR r.name = ANY (%s)",
            (names, names),
        )
        self.in_flight.update(name for (name,) in found)

    # ── emitters ──

    @asynccontextmanager
    async def emitting(self, n: int, *, pause_seconds: float = 0.01) -> AsyncIterator[None]:
        """So many emitters, each with keys of its own, until the block ends."""
        stop = asyncio.Event()
        tasks = [asyncio.create_task(self._emit(i, stop, pause_seconds)) for i in range(n)]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    async def _emit(self, me: int, stop: asyncio.Event, pause_seconds: float) -> None:
        """Commit, roll back and break off, and count for each key what may have been committed."""
        seq: Counter[int] = Counter()
        while not stop.is_set():
            try:
                async with await psycopg.AsyncConnection.connect(self.dsn, connect_timeout=5) as connection:
                    while not stop.is_set():
                        await self._transaction(connection, me, seq)
                        await asyncio.sleep(pause_seconds)
            except psycopg.OperationalError:
                self.unknown += 1
                await asyncio.sleep(0.1)

    async def _transaction(
        self, connection: psycopg.AsyncConnection[tuple[Any, ...]], me: int, seq: Counter[int]
    ) -> None:
        ids = []
        for _ in range(self.chance.randint(1, 4)):
            key = self.chance.randrange(KEYS)
            seq[key] += 1
            given = (TOPIC, f'{{"seq": {seq[key]}}}', f"{me}.{key}", f"t{me % 3}")
            row = await (await connection.execute(EMIT, given)).fetchone()
            assert row is not None
            ids.append(row[0])
        if self.chance.random() < 0.1:
            await connection.rollback()
            self.undone.update(ids)
        else:
            await connection.commit()
            self.acknowledged.update(ids)

    def emit(self, key: str, n: int = 1, *, tenant: str = "") -> list[str]:
        """Emit at once, in a transaction each; answers the ids."""
        ids = [self.rows(EMIT, (TOPIC, f'{{"seq": {seq}}}', key, tenant))[0][0] for seq in range(1, n + 1)]
        self.acknowledged.update(ids)
        return ids

    # ── looking ──

    def rows(self, query: str, params: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Ask the database past the product; reconnects once."""
        for again in (True, False):
            try:
                if self._connection is None:
                    self._connection = psycopg.connect(self.dsn, autocommit=True)
                return self._connection.execute(query.encode(), params).fetchall()
            except psycopg.OperationalError:
                self._connection = None
                if not again:
                    raise
        raise AssertionError

    def value(self, query: str) -> Any:
        return self.rows(query)[0][0]

    def received(self) -> list[Received]:
        """The receiver's log so far."""
        words = (line.split() for line in self.log.read())
        return [Received(one, tenant, key, int(seq), int(pid)) for one, tenant, key, seq, pid in words]

    async def converge(self, findings: Findings, seconds: float) -> float | None:
        """Until nothing is left to deliver; answers the seconds it took."""
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            with suppress(psycopg.OperationalError):
                if not self.value("SELECT count(*) FROM livewell.event_delivery"):
                    return round(time.monotonic() - begun, 2)
            await asyncio.sleep(0.1)
        left = self.value("SELECT count(*) FROM livewell.event_delivery")
        findings.check(False, f"{left} events were not delivered within {seconds:g} s: {self.state()}")
        return None

    def state(self) -> str:
        """For a violation: who has what."""
        return str(
            self.rows(
                "SELECT (SELECT jsonb_agg(to_jsonb(r) - 'sink') FROM livewell.relay r)::text, "
                "(SELECT jsonb_object_agg(state, n) FROM (SELECT state, count(*) AS n FROM livewell.event_block "
                "GROUP BY 1) b)::text, (SELECT count(*) FROM livewell.relay_shard WHERE relay IS NULL)"
            )
        )

    # ── judging ──

    def audit(self, findings: Findings) -> None:
        """Nothing lost, nothing from nowhere, no key out of order, and twice only what a fault caught."""
        received = self.received()
        times = Counter(one.id for one in received)
        events = {name for (name,) in self.rows("SELECT livewell.event_id(number) FROM livewell.event")}
        dead = {name for (name,) in self.rows("SELECT livewell.event_id(number) FROM livewell.dead_event")}
        lost = (self.acknowledged | events) - set(times) - dead
        findings.check(not lost, f"{len(lost)} events were lost, as {sorted(lost)[:3]}")
        strange = (set(times) - events) | (set(times) & self.undone)
        findings.check(not strange, f"{len(strange)} events came that were never committed, as {sorted(strange)[:3]}")
        reordered = self._reordered(received)
        findings.check(not reordered, f"{len(reordered)} keys came out of order, as {reordered[:3]}")
        content = {(one.id, one.tenant, one.key, one.seq) for one in received}
        findings.check(len(content) == len(times), f"{len(content) - len(times)} ids came with two contents")
        too_many = {name: n for name, n in times.items() if n - 1 > self.in_flight[name]}
        findings.check(not too_many, f"{len(too_many)} events came twice that no fault caught: {list(too_many)[:3]}")
        findings.figures |= {
            "events": len(events),
            "acknowledged": len(self.acknowledged),
            "lost": len(lost),
            "keys_out_of_order": len(reordered),
            "duplicates": sum(n - 1 for n in times.values()),
            "in_flight_at_faults": self.in_flight.total(),
            "duplicates_beyond": len(too_many),
        }

    @staticmethod
    def _reordered(received: list[Received]) -> list[str]:
        """Keys of which a first arrival came before one that was committed earlier."""
        newest: dict[tuple[str, str], int] = {}
        seen: set[str] = set()
        found: list[str] = []
        for one in received:
            lane = (one.tenant, one.key)
            if one.id not in seen and one.seq < newest.get(lane, 0):
                found.append(f"{one.key}: {one.seq} after {newest[lane]}")
            newest[lane] = max(newest.get(lane, 0), one.seq)
            seen.add(one.id)
        return found


@contextmanager
def _database(server: str) -> Iterator[str]:
    """An empty one, on a server that may crash meanwhile."""
    name = f"lw_outbox_{secrets.token_hex(6)}"
    try:
        yield scratch.create(server, name)
    finally:
        scratch.drop(server, name)


@asynccontextmanager
async def open_outbox(scale: Scale, **settings: object) -> AsyncIterator[OutboxFleet]:
    """A migrated database with a topic and a sink, and the receiver; all gone afterwards."""
    with _database(scale.server) as dsn:
        fleet = OutboxFleet(
            dsn, AppendLog(scale.folder / "received"), free_port(), scale.random(), {**QUICK, **settings}
        )
        app = Livewell(Settings.model_validate({"database_url": SecretStr(dsn), **fleet.settings}))
        declare(app, fleet.port)
        await app.open(apply_migrations=True)
        await app.close()
        try:
            await fleet.receive()
            yield fleet
        finally:
            for child in fleet.children:
                await asyncio.to_thread(child.close)
            if fleet._connection is not None:
                fleet._connection.close()
