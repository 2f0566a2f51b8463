"""The tour, step by step.

    Postgres ──▶ schema ──▶ enqueue ──▶ two workers ──half-way──▶ kill -9 ──lease over──▶ recovered ──▶ count

Whatever happens on the way, Ctrl-C included, it ends its workers, removes its rows, and stops the
server if it has started it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from livewell.app import Livewell
from livewell.apps.kit.processes import LEASE_SECONDS, LivewellProcess, log_folder, short_lease
from livewell.apps.tour.ledger import Ledger, Snapshot
from livewell.apps.tour.narration import Bar, Narrator
from livewell.apps.tour.tasks import QUEUE, RUNS_FILE, app, count_runs, visit
from livewell.apps.tour.workers import two_workers
from livewell.db import embedded, migrate
from livewell.errors import LivewellError
from livewell.settings import Settings
from livewell.telemetry.redact import mask_url

_TARGET = "livewell.apps.tour.tasks:app"
_BATCH = 1000
_START_SECONDS = 60.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Tally:
    """The honest count. A job that was not done when the tour ended counts as lost."""

    jobs: int
    done: int
    lost: int
    effects_doubled: int
    runs_repeated: int
    killed_worker_held: int
    recovery_seconds: float | None
    seconds: float

    @property
    def good(self) -> bool:
        """Nothing lost, nothing done twice."""
        return self.lost == 0 and self.effects_doubled == 0


async def tour(settings: Settings, jobs: int, narrator: Narrator) -> Tally:
    """Take the tour."""
    started = time.monotonic()
    narrator.title(
        f"Livewell: {jobs:,} jobs, two workers, one of them killed half-way",
        "A job may run twice when its worker dies. Its effect must happen once, and no job may be forgotten.",
    )
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(_database(settings, narrator))
        await _schema(settings, address, narrator)
        opened = await stack.enter_async_context(_opened(address))
        ledger = await stack.enter_async_context(_prepared(opened))
        folder = await stack.enter_async_context(log_folder("livewell-tour-"))
        await _enqueue(opened, jobs, narrator)
        workers = await stack.enter_async_context(
            two_workers(_TARGET, queue=QUEUE, folder=folder, env=_environment(address, folder / "runs"))
        )
        work = _Work(ledger, workers, narrator, jobs)
        await work.start(opened)
        held, recovery = await work.watch()
        done, doubled = await ledger.count()
        runs = count_runs(folder / "runs")
        tally = Tally(
            jobs=jobs,
            done=done,
            lost=jobs - done,
            effects_doubled=doubled,
            runs_repeated=runs.total() - len(runs),
            killed_worker_held=held,
            recovery_seconds=recovery,
            seconds=round(time.monotonic() - started, 2),
        )
        narrator.step("Count", f"{runs.total():,} runs in the file, {done + doubled:,} rows in the table")
        _tell(tally, narrator)
        return tally


@asynccontextmanager
async def _database(settings: Settings, narrator: Narrator) -> AsyncIterator[str]:
    """The configured server; or the embedded one, which is stopped afterwards if it was not running
    before.
    """
    if settings.database_url is not None:
        address = settings.database_url.get_secret_value()
        narrator.step("Postgres", f"DATABASE_URL is set, so that server it is: {mask_url(address)}")
        yield address
        return
    data_dir = settings.data_dir or embedded.default_data_dir()
    ours = await asyncio.to_thread(embedded.status, data_dir) is None
    began = time.monotonic()
    try:
        with narrator.waiting("starting Postgres; the first time it makes its data folder"):
            server = await asyncio.to_thread(embedded.start, data_dir)
        narrator.step(
            "Postgres",
            f"embedded Postgres {server.version} {'started' if ours else 'found running'} in "
            f"{time.monotonic() - began:.1f} s",
            f"No server was set up for this: it is a Python package. Its data: {data_dir}",
        )
        yield server.dsn
    finally:
        if ours:
            await asyncio.to_thread(embedded.stop, data_dir)


async def _schema(settings: Settings, address: str, narrator: Narrator) -> None:
    report = await asyncio.to_thread(migrate.migrate, address, roles=settings.roles)
    what = f"{len(report.applied)} files applied in {report.seconds:.1f} s" if report.applied else "current"
    narrator.step(
        "Schema",
        f"release {report.version}, {what}",
        "Tables and functions; the queue's state machine lives in the database.",
    )


@asynccontextmanager
async def _opened(address: str) -> AsyncIterator[Livewell]:
    await app.open(settings=Settings.load(database_url=address))
    try:
        yield app
    finally:
        await app.close()


@asynccontextmanager
async def _prepared(opened: Livewell) -> AsyncIterator[Ledger]:
    """Room for the tour, and none of it left afterwards."""
    ledger = Ledger(opened.database)
    await _wait_for_others(ledger)
    await ledger.prepare()
    try:
        yield ledger
    finally:
        await ledger.clean()
        await ledger.forget_queue()


async def _wait_for_others(ledger: Ledger) -> None:
    """A tour that was killed leaves a lease of two seconds; one that runs keeps renewing it."""
    give_up = time.monotonic() + 2 * LEASE_SECONDS
    while found := await ledger.workers():
        if time.monotonic() > give_up:
            raise LivewellError(
                f"another tour is running on this database (worker {', '.join(found)}). Wait for its end, and try again"
            )
        await asyncio.sleep(_LOOK_SECONDS)


def _environment(address: str, runs: Path) -> dict[str, str]:
    return {**short_lease(address, grace_seconds=3), RUNS_FILE: str(runs)}


async def _enqueue(opened: Livewell, jobs: int, narrator: Narrator) -> None:
    """Into a paused queue, so that both workers start at the same moment."""
    await opened.admin.pause(QUEUE)
    began = time.monotonic()
    with narrator.bar(jobs, stays=False) as bar:
        for first in range(1, jobs + 1, _BATCH):
            last = min(jobs, first + _BATCH - 1)
            await visit.enqueue_many({"number": number} for number in range(first, last + 1))
            bar.move(last, "enqueued")
    seconds = time.monotonic() - began
    narrator.step(
        "Enqueue",
        f"{jobs:,} jobs in {seconds:.2f} s: {jobs / seconds:,.0f} a second",
        "Each will note its run in a file and write one row, together with its own end.",
    )


def _tell(tally: Tally, narrator: Narrator) -> None:
    narrator.end(
        f"{tally.done:,} done, {tally.lost:,} lost, {tally.effects_doubled:,} effects doubled, "
        f"{tally.runs_repeated:,} runs repeated",
        f"{tally.seconds:.1f} s in all. Repeated are the runs that the dead worker had begun; none of them had "
        "committed its row.",
        good=tally.good,
    )


class _Work:
    """Steps 4 to 6: the workers at work, the kill, the recovery."""

    def __init__(self, ledger: Ledger, workers: list[LivewellProcess], narrator: Narrator, jobs: int) -> None:
        self._ledger = ledger
        self._workers = workers
        self._victim: LivewellProcess | None = None
        self._narrator = narrator
        self._jobs = jobs
        self._dead: list[int] = []
        self._held: list[int] = []
        self._killed_at: float | None = None
        self._recovery: float | None = None

    async def start(self, opened: Livewell) -> None:
        """Wait until both are registered, then open the queue."""
        began = time.monotonic()
        with self._narrator.waiting("starting two worker processes"):
            while len(await self._ledger.workers()) < 2:
                self._require_alive()
                if time.monotonic() - began > _START_SECONDS:
                    raise LivewellError(f"the workers did not register within {_START_SECONDS:g} s")
                await asyncio.sleep(_LOOK_SECONDS)
        self._narrator.step(
            "Work",
            f"two worker processes, up in {time.monotonic() - began:.1f} s: "
            f"{' and '.join(map(_called, self._workers))}",
            "livewell worker livewell.apps.tour.tasks:app, twice",
        )
        await opened.admin.pause(QUEUE, paused=False)

    async def watch(self) -> tuple[int, float | None]:
        """Until no job is left, or for too long; answers how many jobs the victim held, and how
        long until others had them.
        """
        give_up = time.monotonic() + 60 + self._jobs / 50
        with self._narrator.bar(self._jobs, stays=True) as bar:
            while time.monotonic() < give_up:
                now = await self._ledger.look(self._dead, self._held)
                await self._react(now, bar)
                if now.live == 0 and self._recovery is not None:
                    break
                self._require_alive()
                await asyncio.sleep(_LOOK_SECONDS)
        return len(self._held), self._recovery

    async def _react(self, now: Snapshot, bar: Bar) -> None:
        if self._killed_at is None and now.done >= self._jobs // 2:
            await self._kill(now)
        elif self._killed_at is not None and self._recovery is None and now.orphans == 0:
            self._recovery = round(time.monotonic() - self._killed_at, 2)
            self._tell_recovery()
        orphans = f", {now.orphans:,} of the dead worker's waiting" if now.orphans else ""
        bar.move(now.done, f"{now.done:,} done, {now.running:,} in hand{orphans}")

    async def _kill(self, now: Snapshot) -> None:
        """The one that holds more: a fault that hits an idle worker shows nothing."""
        holds = [(len((await self._ledger.held(worker.name))[1]), worker) for worker in self._workers]
        victim = self._victim = max(holds, key=lambda pair: pair[0])[1]
        self._killed_at = time.monotonic()
        await victim.kill()
        self._dead, self._held = await self._ledger.held(victim.name)
        self._narrator.step(
            "Kill",
            f"kill -9 {victim.pid}: {victim.name} is gone at {now.done:,} done, with {len(self._held):,} jobs "
            "in its hands",
            f"It told nobody. Its lease runs out in {LEASE_SECONDS} s; until then its jobs remain its own.",
            style="red",
        )

    def _require_alive(self) -> None:
        for worker in self._workers:
            if worker is not self._victim:
                worker.require_alive()

    def _tell_recovery(self) -> None:
        held = len(self._held)
        self._narrator.step(
            "Recovery",
            f"{self._recovery:.1f} s after the kill the last of the {held:,} was in other hands"
            if held
            else "there was nothing to recover",
            "They run one at a time: if one of them was the killer, it takes no other with it.",
            style="green",
        )


def _called(worker: LivewellProcess) -> str:
    return f"{worker.name} (pid {worker.pid})"
