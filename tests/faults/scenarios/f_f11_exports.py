"""F-F11: kill -9 at every step of an export: of worker, child, server, Postgres, store and cleaner.

    POST ─request─▶ waiting ─begin─▶ running ─read─▶ 25 ─rendering─▶ 50 ─rendered─▶ 75 ─file-row─▶ the file ─put─▶
      ─put-half─▶ ─put-done─▶ 90 ─stored─▶ 100 ─finish─▶ the job ─job─▶ ended          cancel, delete, forget: beside it

At each point the one who is there is stopped (crash_points.py, export_store.py), the victim is
killed, and the statement that waited is lost or goes on. Then all of them are started again.

Holds: what was accepted ends, and gives the bytes that its document makes; after the cleaner no
file is without a row and no row without a file; the quota of every user is the sum of their files;
no step says 100 before there is a file, and none is skipped or repeated.

What was broken on purpose to see it fail is in docs/reference/evidence/faults.md.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import psycopg

from livewell.db.embedded import EmbeddedServer
from tests.faults.crash_points import REACH_SECONDS_MAX, CrashPoint
from tests.faults.database_support import own_server
from tests.faults.export_fleet import ExportFleet, Promise, User, open_exports
from tests.faults.scenario import Findings, Scale
from tests.faults.scenarios.f_b1_crashed_server import crash

CODE = "F-F11"
TITLE = "Exports: kill -9 at every step, of everybody"

DURABLE = {"fsync": "on", "synchronous_commit": "on", "max_connections": "100"}
IN_SQL = ("begin", "read", "rendered", "file-row", "stored", "finish", "job")
IN_STORE = ("put", "put-half", "put-done")
_RENDERING = "EXISTS (SELECT FROM livewell.export WHERE state = 'running' AND progress = 25)"
_EXPIRE = "UPDATE livewell.export SET expires_at = livewell.now() - interval '1 second' WHERE id = %s"
_HURRY = """
UPDATE livewell.job SET run_at = livewell.now() WHERE kind = 'export.render' AND state = 'delayed' AND run_at > livewell.now()
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One crash: where, of whom, and what becomes of the statement that was there."""

    point: str
    victim: str
    written: bool = False

    @property
    def name(self) -> str:
        """In the matrix, and in the name of the document."""
        return f"{self.point}.{self.victim}.{'written' if self.written else 'lost'}"


def cells(*, full: bool) -> list[Cell]:
    """The matrix. Its short form has one of each kind that no other test has."""
    if not full:
        return [
            Cell("rendering", "child"),
            Cell("file-row", "worker", written=True),
            Cell("put-done", "worker"),
            Cell("put-half", "store"),
            Cell("request", "server", written=True),
        ]
    both = (False, True)
    return [
        *(Cell(point, "worker", written) for point in IN_SQL for written in both),
        *(Cell(point, "child") for point in ("read", "rendering", "rendered")),
        *(
            Cell(point, "postgres")
            for point in ("request", *IN_SQL, "cancel", "delete", "forget", "put-half", "put-done")
        ),
        *(Cell(point, "worker") for point in ("rendering", *IN_STORE)),
        *(Cell(point, "store") for point in (*IN_STORE, "store-delete", "store-delete-done")),
        *(Cell(point, "server", written) for point in ("request", "cancel", "delete", "forget") for written in both),
        *(Cell(point, victim) for point in ("store-delete", "store-delete-done") for victim in ("server", "cleaner")),
        *(Cell("forget", "cleaner", written) for written in both),
    ]


class Point(Protocol):
    """Where somebody can be made to wait."""

    def arm(self) -> None: ...
    async def reached(self) -> bool: ...
    def let_go(self, *, written: bool) -> None: ...


class StorePoint:
    """A point of the small S3, by files in its folder."""

    def __init__(self, folder: Path, point: str) -> None:
        self._hold, self._at = folder / f"hold-{point}", folder / f"at-{point}"

    def arm(self) -> None:
        """The next request that comes there waits."""
        self._at.unlink(missing_ok=True)
        self._hold.touch()

    async def reached(self) -> bool:
        """Wait until one is there."""
        return await _until(self._at.exists)

    def let_go(self, *, written: bool) -> None:
        """What waited goes on, if it lives."""
        del written
        self._hold.unlink(missing_ok=True)


class SlowRender:
    """Not a point in a protocol: a document that takes a second to render."""

    def __init__(self, fleet: ExportFleet) -> None:
        self._fleet = fleet

    def arm(self) -> None:
        """The document does it."""

    async def reached(self) -> bool:
        """Wait until its export has been read, and a little longer."""
        found = await _until(
            lambda: bool(
                self._fleet.fleet.value(
                    "SELECT count(*) FROM livewell.export WHERE state = 'running' AND progress = 25"
                )
            )
        )
        await asyncio.sleep(0.2)
        return found is not None

    def let_go(self, *, written: bool) -> None:
        """It ends by itself."""


@dataclass(slots=True)
class Lab:
    """What a cell needs."""

    fleet: ExportFleet
    server: EmbeddedServer
    findings: Findings
    lines: dict[str, str] = field(default_factory=dict)

    def point(self, name: str) -> Point:
        """The one of this name, wherever it is."""
        if name == "rendering":
            return SlowRender(self.fleet)
        if name in (*IN_STORE, "store-delete", "store-delete-done"):
            return StorePoint(self.fleet.folder, name.removeprefix("store-"))
        return CrashPoint(self.fleet.fleet.dsn, name)

    async def strike(self, victim: str, promise: Promise | None) -> None:
        """kill -9; the next one takes its place."""
        if victim == "worker":
            assert promise is not None
            worker = self.fleet.victim(promise)
            self.findings.check(worker is not None, f"{promise.document}: nobody has the job that is being worked on")
            if worker is not None:
                await self.fleet.kill_worker(worker)
        elif victim == "child":
            for child in self.fleet.children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        elif victim == "server":
            await self.fleet.kill_server()
        elif victim == "store":
            await self.fleet.kill_store()
        else:
            self.server = await asyncio.to_thread(crash, self.server, kill=True)
        self.findings.fired += 1


async def run(scale: Scale) -> Findings:
    """Cell by cell, then the judgement of all."""
    findings = Findings()
    async with _stage(scale) as server, open_exports(replace(scale, server=server.dsn)) as fleet:
        lab = Lab(fleet, server, findings)
        for cell in cells(full=scale.full):
            begun, violations = time.monotonic(), len(findings.violations)
            try:
                said = await _cell(lab, cell)
            except Exception as error:  # noqa: BLE001 - one cell that fails is a violation, and the matrix goes on
                findings.check(False, f"{cell.name}: {type(error).__name__}: {error}")
                said = "failed"
            finally:
                for hold in fleet.folder.glob("hold-*"):
                    hold.unlink()
            bad = "" if len(findings.violations) == violations else " VIOLATED"
            lab.lines[cell.name] = f"{said}, {time.monotonic() - begun:.1f} s{bad}"
            print(f"{cell.point:18} {cell.victim:9} {'written' if cell.written else 'lost':8} {lab.lines[cell.name]}")
        async with hurried(fleet):
            findings.figures["converged_seconds"] = await fleet.converge(findings)
        findings.figures |= fleet.audit(findings)
        findings.figures |= {"cells": len(lab.lines), "matrix": lab.lines}
    return findings


@asynccontextmanager
async def _stage(scale: Scale) -> AsyncIterator[EmbeddedServer]:
    """A Postgres that may be killed."""
    async with own_server(DURABLE, on_disk=scale.full) as server:
        yield server


async def _cell(lab: Lab, cell: Cell) -> str:
    user = lab.fleet.user(cell.name)
    slow = cell.point in ("rendering", "cancel")
    document = f"{'slow' if slow else 'sheet'}.{cell.name}"
    if cell.point == "request":
        return await _request(lab, cell, user, document)
    if cell.victim == "cleaner":
        return await _clean(lab, cell, user, document)
    if cell.point in ("cancel", "delete", "forget", "store-delete", "store-delete-done"):
        return await _end(lab, cell, user, document)
    point = lab.point(cell.point)
    point.arm()
    promise = await lab.fleet.ask(user, document)
    assert promise is not None
    await _crash(lab, cell, point, promise)
    state = await _finish(lab, promise)
    lab.findings.check(state == "finished", f"{cell.name}: it ended as {state}, {promise.reason}")
    return f"{state} in attempt {promise.steps[-1][3]}"


async def _request(lab: Lab, cell: Cell, user: User, document: str) -> str:
    """The server, or Postgres, dies while it accepts: the user asks again, and has what they asked for."""
    point = lab.point(cell.point)
    point.arm()
    asking = asyncio.create_task(lab.fleet.ask(user, document))
    await _crash(lab, cell, point, None)
    await asking
    give_up = time.monotonic() + REACH_SECONDS_MAX
    while (again := await lab.fleet.ask(user, document)) is None:
        if time.monotonic() > give_up:
            raise AssertionError("nobody accepts it any more")
        await asyncio.sleep(0.1)
    await _finish(lab, again)
    listed = (await user.call("GET", "/v1/exports")).json["items"]
    most = 2 if cell.written else 1
    lab.findings.check(1 <= len(listed) <= most, f"{cell.name}: {len(listed)} exports came of it")
    for one in listed:
        await _finish(lab, lab.fleet.promise(user, one["id"], document))
    return f"{len(listed)} of it, {again.state}"


async def _end(lab: Lab, cell: Cell, user: User, document: str) -> str:
    """Somebody dies while an export is cancelled or deleted: it is so, or it is not, and nothing in between."""
    promise = await lab.fleet.ask(user, document)
    assert promise is not None
    cancels = cell.point == "cancel"
    if not cancels:
        await _finish(lab, promise)
    point = lab.point(cell.point)
    point.arm()
    way = ("POST", f"/v1/exports/{promise.id}/cancel") if cancels else ("DELETE", f"/v1/exports/{promise.id}")
    ending = asyncio.create_task(user.call_once(*way))
    await _crash(lab, cell, point, promise)
    await ending
    promise.state, promise.loaded = "waiting", False
    state = await _finish(lab, promise)
    if cell.victim == "server":
        happened = cell.written or cell.point not in ("cancel", "delete")
        wanted = ("cancelled" if cancels else "deleted") if happened else "finished"
        lab.findings.check(state == wanted, f"{cell.name}: it is {state}, and should be {wanted}")
    return state


async def _clean(lab: Lab, cell: Cell, user: User, document: str) -> str:
    """The file has expired, and whoever removes it dies: the next one goes on (E11)."""
    promise = await lab.fleet.ask(user, document)
    assert promise is not None
    await _finish(lab, promise)
    lab.fleet.fleet.rows(_EXPIRE, (promise.id,))
    point = lab.point(cell.point)
    point.arm()
    cleaner = lab.fleet.start_cleaner()
    try:
        lab.findings.check(await point.reached(), f"{cell.name}: nobody came there")
        cleaner.kill()
        lab.findings.fired += 1
    finally:
        point.let_go(written=cell.written)
    answer = await user.call("POST", f"/v1/exports/{promise.id}/link")
    lab.findings.check(answer.status == 410, f"{cell.name}: it has expired, and its link is answered {answer.status}")
    promise.state = "expired"
    return promise.state


async def _crash(lab: Lab, cell: Cell, point: Point, promise: Promise | None) -> None:
    """Wait until somebody is there, kill the victim, and let go what waited."""
    reached = await point.reached()
    lab.findings.check(reached, f"{cell.name}: nobody came there")
    try:
        if reached and cell.victim in ("child", "postgres", "store"):
            await lab.strike(cell.victim, promise)
            point.let_go(written=True)
        elif reached:
            # First the death, then what becomes of the statement; then the next one is started.
            striking = asyncio.create_task(lab.strike(cell.victim, promise))
            await asyncio.sleep(0.3)
            point.let_go(written=cell.written)
            await striking
    finally:
        point.let_go(written=True)


async def _finish(lab: Lab, promise: Promise) -> str:
    async with hurried(lab.fleet):
        return await lab.fleet.finish(promise, lab.findings)


@asynccontextmanager
async def hurried(fleet: ExportFleet) -> AsyncIterator[None]:
    """Attempts are a minute apart and more; in this block what waits for its next one need not."""

    async def hurry() -> None:
        while True:
            await asyncio.sleep(0.5)
            with suppress(psycopg.OperationalError):  # Postgres is the victim
                await asyncio.to_thread(fleet.fleet.rows, _HURRY)

    hurrying = asyncio.create_task(hurry())
    try:
        yield
    finally:
        hurrying.cancel()
        await asyncio.wait([hurrying])


async def _until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + REACH_SECONDS_MAX
    while time.monotonic() < end:
        if holds():
            return True
        await asyncio.sleep(0.01)
    return False
