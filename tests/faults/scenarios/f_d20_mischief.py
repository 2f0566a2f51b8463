"""F-D20: everything goes wrong at once, for ten minutes (R12, R13, R14, X1, X10).

Ill keys among good ones, answers that nobody asked for, walls while the database is away, killed
workers, crashed databases, a frozen upstream.

Calm phases, in which only the upstream is hostile, alternate with storms. The oracle is outside:
the upstream's own log, and triggers that write down every row that was ever stored and every move
of a check time.

    wrong         a stored row whose mark names another type or key, or was never true
    false fresh   a check time that moved without an honest answer, or a verdict "fresh" whose last honest answer is older than the time to live
    above         calls in any window, as the upstream stamps them, beyond the limit
    early         calls between a wall and the end of the silence that it asked for
    late          in calm phases: a good key that was not confirmed for longer than its time to live + 5 s

Can it fail? With 0.5.0 every line fails: see docs/reference/evidence/faults.md.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import psycopg
from pydantic import SecretStr

from livewell import Livewell, Settings
from livewell.db.embedded import EmbeddedServer
from livewell.refresh.definition.document import read
from livewell.refresh.registry.apply import apply
from livewell.testing.history import AppendLog
from livewell.testing.processes import ChildProcess
from tests.faults.database_support import own_server
from tests.faults.fleet import ROOT, Fleet, Worker, open_fleet
from tests.faults.mischief import ILL, TYPES
from tests.faults.refresh_app import DEADLINE
from tests.faults.refresh_fleet import COMMAND, HOST
from tests.faults.scenario import Findings, Scale
from tests.faults.scenarios.f_b1_crashed_server import crash

CODE = "F-D20"
TITLE = "ill keys, unasked answers, walls in outages, kills"

TTL_SECONDS = 4
LATE_SECONDS = 5  # beyond the time to live: what a good key may wait in a calm phase
SETTLE_SECONDS = 12.0  # after a storm, before a calm phase is judged
RATE, WINDOW_SECONDS = 100, 10.0
WALL_SECONDS = 6
CALL_SECONDS = 2.0
PERMIT_SECONDS = 0.25
GOOD = {"price": 20, "rating": 8, "annual": 6, "quarter": 6}
LOOK_SECONDS = 0.25

TRAIL = """
CREATE TABLE public.stored (data_type text, key text, mark text);
CREATE TABLE public.moved (data_type text, key text, checked_at timestamptz, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION public.note_stored() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    'BEGIN INSERT INTO public.stored VALUES (TG_TABLE_NAME, NEW.key, NEW.mark); RETURN NULL; END';
CREATE FUNCTION public.note_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
    'BEGIN INSERT INTO public.moved VALUES (NEW.data_type, NEW.key, NEW.checked_at); RETURN NULL; END';
CREATE TRIGGER note_moved AFTER UPDATE ON livewell.ledger FOR EACH ROW
    WHEN (OLD.checked_at IS DISTINCT FROM NEW.checked_at) EXECUTE FUNCTION public.note_moved()
"""
LOOK = """
SELECT l.data_type, l.key, livewell.verdict(d, l, livewell.now()), extract(epoch FROM livewell.now() - l.checked_at)::float8, extract(epoch FROM livewell.now())::float8
FROM livewell.ledger l JOIN livewell.data_type d ON d.name = l.data_type
"""
STAY = "UPDATE livewell.viewer_session SET seen_at = livewell.now()"


def definitions(url: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The upstream and its four types.

    With a batch endpoint, without an echo of the key, and two whose answers look alike (and so
    share no connection).
    """
    yield (
        "mischief.toml",
        {
            "upstream": {
                "name": "mischief",
                "base_url": url,
                "rate": f"{RATE}/{WINDOW_SECONDS:g}s",
                "permit": f"{PERMIT_SECONDS}s",
                "concurrency": 10,
                "per_key": 1,
            }
        },
    )
    for name in TYPES:
        last = '"last": 1.5, ' if name == "price" else ""
        row = f'{{"symbol": "K00", {last}"at": 1784750401, "n": 1, "mark": "{name}|K00|1"}}'
        answer: dict[str, Any] = {
            "rows": "@",
            "kind": "one",
            "source_time": {"field": "at", "format": "unix_seconds"},
        } | ({"no_echo": True, "ignore": ["symbol"]} if name == "rating" else {"key": "symbol"})
        fetch: dict[str, Any] = {
            "path": f"/{name}",
            "query": {"symbol": "{key}"},
            "key_pattern": "[A-Z0-9-]{1,20}",
            "body_bytes_max": 100_000,
        }
        if name == "price":
            fetch["batch"] = {"path": "/prices", "query": {"symbols": "{keys}"}, "keys_max": 50}
        yield (
            f"{name}.toml",
            {
                "type": {
                    "name": name,
                    "upstream": "mischief",
                    "ttl": f"{TTL_SECONDS}s",
                    "negative_ttl": "1m",
                    "strategy": "on_demand",
                    "size_estimate": 500,
                },
                "fetch": fetch,
                "answer": answer,
                "columns": {"at": {"type": "bigint"}, "n": {"type": "bigint"}, "mark": {"type": "text"}}
                | ({"last": {"type": "numeric"}} if name == "price" else {}),
                "sample": {"key": "K00", "recorded": "2026-07-22", "body": f"[{row}]"},
            },
        )


@dataclass(slots=True)
class Stage:
    """Everything of one run."""

    scale: Scale
    findings: Findings
    chance: Random
    server: EmbeddedServer
    fleet: Fleet
    app: Livewell
    upstream: ChildProcess
    port: int
    log: AppendLog
    calm_since: float | None = None  # monotonic, settled
    late: dict[str, float] = field(default_factory=dict)  # worst wait of a good key in calm phases
    looks: list[tuple[str, str, float]] = field(default_factory=list)  # type, key, instant: called fresh
    storms: dict[str, int] = field(default_factory=dict)

    async def order(self, **order: object) -> dict[str, Any]:
        """Tell the upstream what to do; it is in force when this returns."""
        body = json.dumps(order).encode()
        reader, writer = await asyncio.open_connection(HOST, self.port)
        try:
            writer.write(b"POST /_order HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            answer: dict[str, Any] = json.loads(await reader.readexactly(length))
            return answer
        finally:
            writer.close()

    def start(self) -> Worker:
        """One more worker."""
        return self.fleet.start(env={DEADLINE: str(CALL_SECONDS)}, command=COMMAND)

    def look(self) -> None:
        """What the product says of every key now."""
        calm = self.calm_since is not None and time.monotonic() > self.calm_since
        for kind, key, verdict, age, at in self.fleet.rows(LOOK):
            if verdict == "fresh":
                self.looks.append((kind, key, at))
            if calm and not key.startswith("ILL-"):
                waited = age if age is not None else float("inf")
                self.late[f"{kind} {key}"] = max(waited, self.late.get(f"{kind} {key}", 0.0))

    async def keep_looking(self, enough: asyncio.Event) -> None:
        """Look again and again, whatever the database does; viewers stay."""
        stayed = 0.0
        while not enough.is_set():
            with suppress(psycopg.Error):
                if time.monotonic() - stayed > 30:
                    await asyncio.to_thread(self.fleet.rows, STAY)
                    stayed = time.monotonic()
                await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_SECONDS)


async def run(scale: Scale) -> Findings:
    """Calm and storm by turns."""
    async with _stage(scale) as stage:
        workers = [stage.start() for _ in range(scale.pick(2, 3))]
        await asyncio.gather(*(worker.started() for worker in workers))
        await asyncio.sleep(SETTLE_SECONDS)
        storms = (_kill_worker, _wall_in_outage, _freeze_upstream, _crash_database)
        ends = time.monotonic() + scale.pick(1, 600)
        while time.monotonic() < ends:
            await _calm(stage, scale.pick(8, 30))
            for storm in storms if scale.full else storms[:2]:
                await storm(stage, workers)
                stage.storms[storm.__name__[1:]] = stage.storms.get(storm.__name__[1:], 0) + 1
                await asyncio.sleep(stage.chance.uniform(1, 4))
        await _calm(stage, scale.pick(8, 30))
        for worker in workers:
            stage.findings.check(worker.alive, f"a worker ended by itself: {worker.child.describe(8)}")
        _judge(stage)
    return stage.findings


# ── phases ──


async def _calm(stage: Stage, seconds: float) -> None:
    """Only the upstream is hostile; what good keys wait is judged once the storm is over."""
    stage.calm_since = time.monotonic() + SETTLE_SECONDS
    await asyncio.sleep(SETTLE_SECONDS + seconds)
    stage.calm_since = None


async def _kill_worker(stage: Stage, workers: list[Worker]) -> None:
    place = stage.chance.randrange(len(workers))
    workers[place].kill()
    await workers[place].ended()
    workers[place] = stage.start()
    await workers[place].started()


async def _crash_database(stage: Stage, _: list[Worker]) -> None:
    stage.server = await asyncio.to_thread(crash, stage.server, kill=stage.chance.random() < 0.5)


async def _freeze_upstream(stage: Stage, _: list[Worker]) -> None:
    """Its stamps bunch afterwards: every call that came meanwhile is read at once."""
    stage.upstream.freeze()
    await asyncio.sleep(stage.chance.uniform(1, 3))
    stage.upstream.thaw()


async def _wall_in_outage(stage: Stage, _: list[Worker]) -> None:
    """Calls are held, the database dies, and then they are told to keep silent.

    Nobody can write that down.
    """
    await stage.order(hold=True)
    for _attempt in range(100):
        if (await stage.order())["waiting"]:
            break
        await asyncio.sleep(0.05)
    crashing = asyncio.create_task(asyncio.to_thread(crash, stage.server, kill=True))
    await asyncio.sleep(0.15)  # by now it is dead; starting again takes longer than what follows
    await stage.order(hold=False, wall_seconds=WALL_SECONDS)
    stage.server = await crashing
    await stage.order(wall_seconds=0)
    await asyncio.sleep(WALL_SECONDS)


# ── the judge ──


def _judge(stage: Stage) -> None:
    findings = stage.findings
    # The database first, the log second: workers go on, and what they store after this the log may
    # know already.
    stored = stage.fleet.rows("SELECT data_type, key, mark FROM public.stored")
    moved = stage.fleet.rows("SELECT data_type, key, count(*)::integer FROM public.moved GROUP BY 1, 2")
    events = [json.loads(line) for line in stage.log.read()]
    calls = [event for event in events if event["event"] == "call"]
    honest: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for event in events:
        if event["event"] == "honest":
            honest.setdefault((event["kind"], event["key"]), []).append(event)
    unasked = sum(event["event"] == "unasked" for event in events)
    walls = [event for event in events if event["event"] == "wall"]
    findings.fired = min(unasked, len(walls), *stage.storms.values())

    true_marks = {f"{kind}|{key}|{one['n']}" for (kind, key), ones in honest.items() for one in ones}
    wrong = [row for row in stored if not row[2].startswith(f"{row[0]}|{row[1]}|") or row[2] not in true_marks]
    findings.check(not wrong, f"{len(wrong)} wrong values stored: {wrong[:3]}")

    served = {place: len(ones) for place, ones in honest.items()}
    unfounded = [(kind, key, n, served.get((kind, key), 0)) for kind, key, n in moved if n > served.get((kind, key), 0)]
    findings.check(not unfounded, f"confirmed more often than anything true was served: {unfounded[:3]}")
    false_fresh = [look for look in stage.looks if not _was_served(honest.get(look[:2], ()), look[2])]
    findings.check(not false_fresh, f"{len(false_fresh)} times fresh without an honest answer: {false_fresh[:3]}")

    busiest = _busiest([call["at"] for call in calls], WINDOW_SECONDS)
    findings.check(busiest <= RATE, f"{busiest} calls in {WINDOW_SECONDS:g} s, {RATE} are allowed")
    early = _early(calls, walls)
    findings.check(not early, f"{len(early)} calls inside a silence, such as {early[:3]} s after the wall")
    limit = TTL_SECONDS + LATE_SECONDS
    late = {name: round(waited, 1) for name, waited in stage.late.items() if waited > limit}
    findings.check(
        not late, f"{len(late)} good keys waited longer than {limit} s while all was calm: {list(late.items())[:4]}"
    )
    findings.check(len(stage.late) == sum(GOOD.values()), f"only {len(stage.late)} good keys were looked at")
    findings.figures = {
        "stored": len(stored),
        "wrong": len(wrong),
        "confirmed": sum(n for _, _, n in moved),
        "unfounded": len(unfounded),
        "looks_fresh": len(stage.looks),
        "false_fresh": len(false_fresh),
        "calls": len(calls),
        "unasked_answers": unasked,
        "busiest_window": busiest,
        "limit": RATE,
        "walls": len(walls),
        "early": len(early),
        "good_key_waited_seconds_max": round(max(stage.late.values(), default=0.0), 1),
        "storms": stage.storms,
    }


def _was_served(answers: Any, at: float) -> bool:
    """Whether something true was served so recently that a value confirmed by it is fresh.

    Both clocks are of this machine.
    """
    return any(at - TTL_SECONDS - 0.5 <= one["wall"] <= at + 0.5 for one in answers)


def _busiest(instants: list[float], seconds: float) -> int:
    instants.sort()
    best = end = 0
    for place, start in enumerate(instants):
        while end < len(instants) and instants[end] - start < seconds:
            end += 1
        best = max(best, end - place)
    return best


def _early(calls: list[dict[str, Any]], walls: list[dict[str, Any]]) -> list[float]:
    """Calls in a silence.

    One that had its permit when the wall came may still arrive; no permit lives longer than this,
    twice (on the way out, on the way in).
    """
    return [
        round(call["at"] - wall["at"], 2)
        for wall in walls
        for call in calls
        if wall["at"] + 2 * PERMIT_SECONDS + 0.25 < call["at"] < wall["at"] + wall["seconds"] - 0.05
    ]


# ── the stage ──


@asynccontextmanager
async def _stage(scale: Scale) -> AsyncIterator[Stage]:
    findings, chance = Findings(), scale.random()
    durable = {"fsync": "on", "synchronous_commit": "on", "max_connections": "100"}
    log = AppendLog(scale.folder / f"mischief-{uuid.uuid4().hex[:8]}.log")
    command = ("-m", "tests.faults.mischief", str(log.path), str(scale.seed))
    given = {"outbound_private_hosts": HOST, "lease_seconds": 2, "call_timeout_seconds": 3}
    async with own_server(durable, on_disk=scale.full) as server:
        with ChildProcess(command, cwd=ROOT) as upstream:
            line = await asyncio.to_thread(upstream.wait_for, "listening on", 30)
            port = int(line.rsplit(" ", 1)[1])
            async with open_fleet(replace(scale, server=server.dsn), **given) as fleet:
                app = Livewell()
                await app.open(
                    settings=Settings.model_validate({"database_url": SecretStr(fleet.dsn), **fleet.settings})
                )
                stage = Stage(scale, findings, chance, server, fleet, app, upstream, port, log)
                await _furnish(stage)
                enough = asyncio.Event()
                looking = asyncio.create_task(stage.keep_looking(enough))
                try:
                    yield stage
                finally:
                    enough.set()
                    await looking
                    with suppress(psycopg.Error):
                        await app.close()


async def _furnish(stage: Stage) -> None:
    """Types, triggers, and one viewer of every good key and of ill ones of each kind."""
    stage.fleet.rows(TRAIL)
    for name, document in definitions(f"http://{HOST}:{stage.port}"):
        await apply(stage.app.database, read(document, name, private_hosts=[HOST]), name)
    for kind, n in GOOD.items():
        stage.fleet.rows(
            f"CREATE TRIGGER note_stored AFTER INSERT OR UPDATE ON livewell_data.{kind} FOR EACH ROW EXECUTE "
            "FUNCTION public.note_stored()"
        )
        ill = [f"ILL-{name}" for name in (ILL if kind in ("price", "annual") else ())]
        keys = [f"K{number:02d}" for number in range(n)] + ill
        session = str(uuid.uuid4())
        stage.fleet.rows("SELECT livewell.open_session(%s, NULL)", (session,))
        stage.fleet.rows("SELECT livewell.subscribe(%s, NULL, %s, %s)", (session, [kind] * len(keys), keys))
    await stage.order(unasked=True)
