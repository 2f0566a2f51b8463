"""Workers that render, a server and a store, each to be killed; users who ask; and the judge of it all.

    async with open_exports(scale) as fleet:
        ann = fleet.user("ann")
        id = await ann.ask("sheet-1")
        fleet.kill(worker) …
        await fleet.converge(findings)          everything that was accepted has ended, the cleaner is done
        fleet.audit(findings)                   nothing lost, wrong or left behind, no quota counted twice

The oracle is outside: what a file has to be is worked out from the document alone, what there is is
read from the disk, and what was promised is what an HTTP client was told.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

import livewell
from livewell.apps.resumes.demo.client import Answer, Client, ServerAway
from livewell.apps.resumes.demo.kills import find_children
from livewell.apps.resumes.demo.verdict import ROWS, USAGE, Verdict, judge_rows
from livewell.errors import DatabaseUnavailable
from livewell.exports.artifacts.open import open_store
from livewell.exports.duties import clean
from livewell.server.auth.api_keys import NewKey
from livewell.settings import Settings
from livewell.testing.processes import ChildProcess, free_port
from tests.faults import crash_points
from tests.faults.export_sheet import sheet
from tests.faults.export_store import BUCKET
from tests.faults.fleet import ROOT, START_SECONDS_MAX, Fleet, Worker, open_fleet
from tests.faults.scenario import Findings, Scale

WORKER = ("-m", "livewell.cli", "worker", "tests.faults.export_app:app", "--queue", "exports")
VERSION = "1"
END_SECONDS_MAX = 90.0
ANSWER_SECONDS_MAX = 30.0
PREFIX = "exports"
_OVER = ("finished", "failed", "cancelled", "deleted", "expired")
_DIRTY = "SELECT count(*)::integer FROM livewell.export_file WHERE state <> 'stored'"
QUICK: dict[str, object] = {
    "lease_seconds": 2,
    "heartbeat_seconds": 0.3,
    "maintain_seconds": 0.2,
    "poll_seconds": 0.1,
    "roles": "none",
    "requests_per_second": 100_000,
    "read_requests_per_second": 100_000,
    "export_renders_max": 2,
}


@dataclass(slots=True)
class Promise:
    """An export that the server has accepted."""

    user: User
    id: str
    document: str
    state: str = "waiting"
    reason: str | None = None
    cancelled: bool = False
    deleted: bool = False
    loaded: bool = False
    steps: list[tuple[int, int, str, int]] = field(default_factory=list)  # seq, progress, state, attempt


@dataclass(slots=True)
class User:
    """Somebody with a key."""

    name: str
    owner: str  # as the rows have it
    client: Client

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        """One request, again until it is answered by a server that can; only for what may be done twice."""
        end = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            answer = await asyncio.to_thread(self.client.insist, method, path, body)
            if answer.status < 500 or time.monotonic() > end:
                return answer
            await asyncio.sleep(0.1)

    async def call_once(self, method: str, path: str, body: Any = None) -> Answer | None:
        """One request; None if nobody knows what became of it."""
        try:
            return await asyncio.to_thread(self.client.ask, method, path, body)
        except ServerAway:
            return None


@dataclass(slots=True)
class ExportFleet:
    """One database, one store, one server and workers."""

    fleet: Fleet
    folder: Path
    store: ChildProcess | None  # None: a folder
    port: int
    store_port: int
    settings: dict[str, object]
    env: dict[str, str]
    server: ChildProcess | None = None
    crew: list[Worker] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    ended: list[ChildProcess] = field(default_factory=list)

    # ── processes ──

    async def start_worker(self) -> Worker:
        """One more, registered."""
        worker = self.fleet.start(env=self.env, command=WORKER, **self.settings)
        await worker.started()
        self.crew.append(worker)
        return worker

    def victim(self, promise: Promise) -> Worker | None:
        """The worker that has the job now."""
        rows = self.fleet.rows(
            "SELECT w.name FROM livewell.job j JOIN livewell.export e ON e.job_id = j.id "
            "JOIN livewell.worker w ON w.id = j.worker WHERE e.id = %s",
            (promise.id,),
        )
        return next((one for one in self.crew for (name,) in rows if name.endswith(f":{one.pid}")), None)

    async def kill_worker(self, worker: Worker) -> None:
        """kill -9, and another one in its place."""
        worker.kill()
        await worker.ended()
        self.crew.remove(worker)
        await self.start_worker()

    def start_cleaner(self) -> ChildProcess:
        """`livewell exports cleanup`, as an operator runs it; what has expired is cleaned at once."""
        self.ended.append(self._command("exports", "cleanup"))
        return self.ended[-1]

    async def start_server(self) -> None:
        """`livewell serve`, on the port it always has."""
        self.server = self._command("serve", "--port", str(self.port), "--json")
        self.ended.append(self.server)
        await asyncio.to_thread(self.server.wait_for, '"address"', START_SECONDS_MAX)

    def _command(self, *words: str) -> ChildProcess:
        given = {"database_url": self.fleet.dsn, **self.fleet.settings, **self.settings}
        return ChildProcess(
            ["-m", "livewell.cli", *words],
            cwd=ROOT,
            env={
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(livewell.__file__).parents[1])]),
                **{f"LIVEWELL_{name.upper()}": str(value) for name, value in given.items()},
                **self.env,
            },
        ).start()

    async def kill_server(self) -> None:
        """kill -9, and another one in its place."""
        assert self.server is not None
        self.server.kill()
        await asyncio.to_thread(self.server.wait, 20)
        await self.start_server()

    async def start_store(self) -> None:
        """The small S3, with what it had on disk."""
        self.store = ChildProcess(
            ["-m", "tests.faults.export_store", str(self.store_port), str(self.folder)], cwd=ROOT
        ).start()
        self.ended.append(self.store)
        await asyncio.to_thread(self.store.wait_for, "storing", START_SECONDS_MAX)

    async def kill_store(self) -> None:
        """kill -9, and another one on the same port and folder."""
        assert self.store is not None
        self.store.kill()
        await asyncio.to_thread(self.store.wait, 20)
        await self.start_store()

    @property
    def files(self) -> Path:
        """Where the files are, past the store."""
        return self.folder / "objects" / PREFIX if self.store is not None else self.folder

    def children(self) -> list[int]:
        """The rendering children of all workers, and those that have no worker any more."""
        mine = [worker.pid for worker in self.crew]
        return [child for parent in (*mine, 1) for child in find_children(parent)]

    # ── users ──

    def user(self, name: str) -> User:
        """Somebody new, with a key."""
        made = NewKey.make()
        row = (made.id, made.hash, "key", name, ["export"], None, False, 36_000)
        self.fleet.rows("SELECT livewell.create_key(%s, %s, %s, %s, %s, %s, %s, %s)", row)
        client = Client(f"http://127.0.0.1:{self.port}", made.text)
        self.users.append(User(name, f"key:{made.id}", client))
        return self.users[-1]

    async def ask(self, user: User, document: str, **options: object) -> Promise | None:
        """Ask for an export, once; None if no answer came."""
        body = {"kind": "sheet", "document": document, "version": VERSION, "options": options}
        answer = await user.call_once("POST", "/v1/exports", body)
        if answer is None or answer.status >= 500:  # nobody knows what became of it
            return None
        assert answer.status == 202, (answer.status, answer.body)
        return self.promise(user, answer.json["id"], document)

    def promise(self, user: User, key: str, document: str) -> Promise:
        """Remember what was accepted; the same once."""
        known = next((one for one in self.promises if one.id == key), None)
        if known is None:
            known = Promise(user, key, document)
            self.promises.append(known)
        return known

    async def follow(self, promise: Promise, findings: Findings, seconds: float = END_SECONDS_MAX) -> str:
        """Poll until it has ended; progress and numbers are checked on the way."""
        end = time.monotonic() + seconds
        while promise.state not in _OVER and time.monotonic() < end:
            seen = promise.steps[-1][0] if promise.steps else 0
            answer = await promise.user.call("GET", f"/v1/exports/{promise.id}?after={seen}")
            if answer.status == 410:
                promise.state = "deleted"
                break
            assert answer.status == 200, (answer.status, answer.body)
            told = answer.json
            for step in told["steps"]:
                self._step(promise, step, findings)
            promise.state, promise.reason = told["state"], told["reason"]
            await asyncio.sleep(0.05)
        if promise.state not in _OVER:
            findings.check(
                False, f"{promise.document}: not ended after {seconds:g} s: {promise.state}, {promise.steps[-3:]}"
            )
        return promise.state

    def _step(self, promise: Promise, step: dict[str, Any], findings: Findings) -> None:
        now = (step["seq"], step["progress"], step["state"], step["attempt"])
        last = promise.steps[-1] if promise.steps else (0, 0, "", 0)
        findings.check(now[0] == last[0] + 1, f"{promise.document}: step {now[0]} after step {last[0]}")
        same = now[3] == last[3] and now[2] == last[2] == "running"
        findings.check(not same or now[1] >= last[1], f"{promise.document}: {last[1]} % and then {now[1]} %")
        findings.check(
            (now[1] == 100) == (now[2] in ("finished", "deleted")), f"{promise.document}: {now[1]} % while {now[2]}"
        )
        promise.steps.append(now)

    async def load(self, promise: Promise, findings: Findings) -> None:
        """Download by a new link; what arrives is what the document makes of itself."""
        link = await promise.user.call("POST", f"/v1/exports/{promise.id}/link")
        if link.status not in (200, 201):
            findings.check(False, f"{promise.document} is finished and has no link: {link.status} {link.body[:200]!r}")
            return
        file = await asyncio.to_thread(promise.user.client.follow_link, link.json["url"])
        right = file.status == 200 and file.body == sheet(promise.document, VERSION)
        findings.check(right, f"{promise.document}: its link answers {file.status} with {len(file.body)} other bytes")
        promise.loaded = right

    async def finish(self, promise: Promise, findings: Findings) -> str:
        """To the end, and if there is a file, load it."""
        state = await self.follow(promise, findings)
        if state == "finished":
            await self.load(promise, findings)
        return state

    # ── judging ──

    async def converge(self, findings: Findings, seconds: float = END_SECONDS_MAX) -> float | None:
        """Until all that was promised has ended, and nothing is left for the cleaner; the seconds it took."""
        begun = time.monotonic()
        for promise in self.promises:
            await self.follow(promise, findings, max(1.0, begun + seconds - time.monotonic()))
        while left := self.fleet.value(_DIRTY):
            if time.monotonic() - begun > seconds:
                findings.check(False, f"{left} files were not cleaned up within {seconds:g} s")
                return None
            await self._clean()
        return round(time.monotonic() - begun, 2)

    async def _clean(self) -> None:
        """The product's cleaner, now and not when its minute is over; also of what a dead cleaner had taken up."""
        self.fleet.rows("UPDATE livewell.export_file SET claimed_at = claimed_at - interval '2 minutes'")
        await asyncio.sleep(0.5)
        given = {"database_url": self.fleet.dsn, **self.settings}
        store = open_store(Settings.model_validate(given), self.env)
        try:
            with suppress(DatabaseUnavailable):  # a connection from before a crash: the next one is good
                await clean(self.fleet.app.database, store, grace_seconds=2 * float(str(QUICK["lease_seconds"])))
        finally:
            await store.close()

    def audit(self, findings: Findings) -> dict[str, int]:
        """Rows, files, quotas, promises; each violation names its document."""
        with psycopg.connect(self.fleet.dsn, row_factory=dict_row) as connection:
            rows = connection.execute(ROWS.encode()).fetchall()
            usage = connection.execute(USAGE.encode()).fetchall()
        verdict = Verdict()
        judge_rows(rows, usage, self.files, verdict)
        for lie in verdict.lies:
            findings.check(False, lie)
        by_id = {str(row["id"]): row for row in rows}
        lost = 0
        for promise in self.promises:
            row = by_id.get(promise.id)
            kept = row is not None and row["state"] in _OVER and (row["state"] != "finished" or promise.loaded)
            lost += not kept
            findings.check(kept, f"{promise.document} was promised, and is {row and row['state']}, {promise.reason}")
        alive = {worker.pid for worker in self.crew}
        orphans = [child for child in find_children(1) if child not in alive]
        findings.check(not orphans, f"{len(orphans)} rendering children outlived their worker")
        strays = self.fleet.value("SELECT count(*)::integer FROM livewell.job WHERE kind = 'export.render'")
        findings.check(not strays, f"{strays} jobs of exports are left")
        return {"lost": lost + verdict.lost, "wrong": verdict.wrong, "orphans": verdict.orphans, "quota": verdict.quota}

    async def close(self) -> None:
        """Nobody lives on."""
        for user in self.users:
            user.client.close()
        for child in self.ended:
            await asyncio.to_thread(child.close)


@asynccontextmanager
async def open_exports(
    scale: Scale,
    *,
    workers: int = 2,
    in_bucket: bool = True,
    folder: Path | None = None,
    dsn: Callable[[str], str] = lambda direct: direct,
    **settings: object,
) -> AsyncIterator[ExportFleet]:
    """A fleet with crash points in its database, a store, a server, and workers.

    in_bucket: the store is the small S3, a process of its own; else a folder.
    """
    async with open_fleet(scale, **QUICK) as fleet:
        with psycopg.connect(fleet.dsn, autocommit=True) as connection:
            crash_points.install(connection)
        place = folder or scale.folder / f"store-{secrets.token_hex(4)}"
        place.mkdir(mode=0o755, exist_ok=True)
        port, store_port = free_port(), free_port()
        given = {**QUICK, "database_url": dsn(fleet.dsn), **settings}
        env: dict[str, str] = {}
        if in_bucket:
            given |= {
                "export_store": f"s3://{BUCKET}/{PREFIX}",
                "export_s3_endpoint": f"http://127.0.0.1:{store_port}",
                "export_link_keys": f"k1:{secrets.token_hex(16)}",
            }
            env = {"AWS_ACCESS_KEY_ID": "fault", "AWS_SECRET_ACCESS_KEY": "fault-secret", "AWS_REGION": "us-east-1"}
        else:
            given |= {"export_store": str(place)}
        fleet.settings = {name: value for name, value in fleet.settings.items() if name != "database_url"}
        exports = ExportFleet(fleet, place, None, port, store_port, given, env)
        try:
            if in_bucket:
                await exports.start_store()
            await exports.start_server()
            await asyncio.gather(*(exports.start_worker() for _ in range(workers)))
            yield exports
        finally:
            await exports.close()
            with suppress(OSError):
                for hold in place.glob("hold-*"):
                    hold.unlink()
