"""The market demo, step by step.

    Postgres ──▶ schema ──▶ simulator ──▶ worker, server ──▶ types ──▶ viewers
                                                                          │
                  the judge's count ◀── the end ◀── figures twice a second ┘

Whatever happens on the way, Ctrl-C included, nothing of it is left running.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from livewell.app import Livewell
from livewell.apps.kit.postgres import Home, home
from livewell.apps.kit.processes import kept, log_folder
from livewell.apps.market.demo.figures import Figures, Gauge
from livewell.apps.market.demo.http_viewers import HttpViewers
from livewell.apps.market.demo.processes import KeptSimulator, kept_worker, worker_environment
from livewell.apps.market.demo.recorder import Recorder
from livewell.apps.market.demo.scenario import HOST, HOSTILE, QUIET, Scenario, documents
from livewell.apps.market.demo.screen import Scene, Screen
from livewell.apps.market.demo.site import Door, answers, choose_port, kept_server
from livewell.apps.market.demo.totals import Course, Totals, judge, total
from livewell.apps.market.demo.viewers import SimulatedViewers
from livewell.apps.market.simulator import Simulator, SimulatorFailed
from livewell.apps.market.simulator.data.universe import Universe
from livewell.apps.market.simulator.oracle.verdict_check import DEADLINE_SECONDS, Interval
from livewell.db import migrate
from livewell.errors import DatabaseError, DatabaseUnavailable, LivewellError
from livewell.refresh.definition.document import read
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.registry.apply import apply
from livewell.refresh.subscribe.subscriptions import Subscriptions
from livewell.settings import Settings

_LOOK_SECONDS = 0.5
_SYMBOLS = 1_000
_SHOWN = 8
_FORGET_SECONDS = 60.0
_OPERATOR_SECONDS = 2.0
_PATIENCE_SECONDS = 30.0  # for the last figures, should the database have been killed in the last moment


async def run(
    settings: Settings, screen: Screen, door: Door, *, seconds: float | None, faults: bool, seed: int, port: int | None
) -> Totals | None:
    """Play it for so long, or until cancelled."""
    scenario = HOSTILE if faults else QUIET
    port = choose_port(settings, port)
    scene = Scene(calls_allowed=scenario.calls_allowed_per_minute)
    async with AsyncExitStack() as stack:
        stack.enter_context(screen.open())
        stage = Stage(scenario, scene, screen, stack, seed)
        await stage.set(settings, door, port)
        return await stage.play(seconds)


class Stage:
    """Everything that runs, from the first step to the last."""

    def __init__(self, scenario: Scenario, scene: Scene, screen: Screen, stack: AsyncExitStack, seed: int) -> None:
        self._scenario = scenario
        self._scene = scene
        self._screen = screen
        self._stack = stack
        self._seed = seed
        self._symbols = Universe(_SYMBOLS).symbols[: scenario.symbols]
        self._types: list[TypeDefinition] = []

    async def set(self, settings: Settings, door: Door, port: int) -> None:
        """Start everything, and say what is being started.

        The simulator starts beside Postgres. The worker starts before the types are applied, and
        finds them without a restart.
        """
        self._folder = await self._stack.enter_async_context(log_folder("livewell-demo-"))
        self._simulator = Simulator(
            self._folder / "fmp.log", seed=self._seed, symbols=_SYMBOLS, knobs=self._scenario.knobs()
        )
        starting = asyncio.ensure_future(self._stack.enter_async_context(self._simulator))
        try:
            self._step("starting Postgres; the first time it makes its data folder")
            self._home = await self._stack.enter_async_context(home(settings, self._screen.say))
            self._step("creating the schema")
            await asyncio.to_thread(migrate.migrate, self._home.address, roles=settings.roles)
            self._app = await self._stack.enter_async_context(_opened(self._home))
        finally:
            await asyncio.wait([starting])
        await starting
        self._step("starting the worker and the server, applying the types")
        env = worker_environment(
            self._home.address, slots=2 * self._scenario.concurrency, credentials=self._scenario.environment, host=HOST
        )
        self._worker = kept_worker(self._folder, env, self._screen.say)
        self._server = kept_server(self._folder, self._home, port, self._screen.say)
        self._kept_simulator = KeptSimulator(self._simulator, self._screen.say)
        await self._stack.enter_async_context(kept([self._worker, self._server, self._kept_simulator]))
        self._types = await apply_types(self._app, documents(self._scenario, self._simulator.url))
        self._recorder = Recorder(self._app.database)
        await self._recorder.prepare(one.name for one in self._types)
        await self._open_the_door(settings, door, port)
        self._step("")

    async def play(self, seconds: float | None) -> Totals | None:
        """Let the viewers in, look every half second, and count at the end."""
        viewers = SimulatedViewers(
            Subscriptions(self._app.database, self._app.nudger),
            self._scenario,
            self._symbols,
            rng=random.Random(self._seed),  # noqa: S311 - simulated people
        )
        gauge = Gauge(self._app.database, self._simulator, self._symbols[:_SHOWN])
        course = Course()
        self._scene.shown = self._symbols[:_SHOWN]
        if self._scenario.frozen:
            await self._simulator.turn(
                frozen_at=time.time(), frozen_symbols=self._scene.shown[-self._scenario.frozen :]
            )
        beside = [asyncio.create_task(viewers.run()), asyncio.create_task(self._quicken())]
        beside.append(asyncio.create_task(self._http_viewers.run()))
        beside.append(asyncio.create_task(self._every(_FORGET_SECONDS, self._recorder.forget)))
        if self._scenario.hostile:
            beside.append(asyncio.create_task(self._every(_OPERATOR_SECONDS, self._unpark)))
        try:
            while seconds is None or course.seconds < seconds:
                await self._look(gauge, viewers, course)
                left = _LOOK_SECONDS if seconds is None else min(_LOOK_SECONDS, seconds - course.seconds)
                await asyncio.sleep(max(0.0, left))
                _check(beside)
            return await self._count(gauge, viewers, course)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _open_the_door(self, settings: Settings, door: Door, port: int) -> None:
        """Say where the page is, once somebody answers there."""
        host, database = settings.http_host, self._app.database
        key = await door.key(database)
        shown = [("quote", symbol) for symbol in self._symbols[:_SHOWN]]
        self._http_viewers = HttpViewers(host.strip("[]"), port, key, shown)
        if await answers(host, port):
            self._scene.link = await door.link(database, settings, f"http://{host}:{port}")

    # ── steps ──

    def _step(self, text: str) -> None:
        self._scene.step = text
        self._screen.show(self._scene)

    async def _look(self, gauge: Gauge, viewers: SimulatedViewers, course: Course) -> None:
        scene = self._scene
        scene.seconds, scene.viewers, scene.came = course.seconds, viewers.present, viewers.came
        scene.streams, scene.pushes = self._http_viewers.open, self._http_viewers.pushes
        scene.processes = {
            "worker": self._worker.pid,
            "server": self._server.pid,
            "simulator": self._kept_simulator.pid,
            "Postgres": self._home.pid,
        }
        scene.hint = _hint(scene.processes, self._home.folder, scene.link)
        try:
            scene.figures = figures = await gauge.take()
            scene.away = None
            scene.step = "" if figures.refreshes else "the worker is starting"
            course.note(figures)
            self._recorder.hear(figures.rows)
            if self._scenario.hostile:
                scene.faults = sum((await self._simulator.counts())["faults"].values())
        except (DatabaseError, DatabaseUnavailable):
            scene.away = "the database does not answer"
        except SimulatorFailed:
            scene.away = "the simulator does not answer"
        self._screen.show(scene)

    async def _count(self, gauge: Gauge, viewers: SimulatedViewers, course: Course) -> Totals:
        """The figures at the end, and what the simulator's log says about all that was stored and
        said.
        """
        seconds = course.seconds
        self._step("comparing everything that was stored with the simulator's log")
        figures: Figures = await _patiently(gauge.take)
        stored = await _patiently(self._recorder.stored)
        claims = list(self._recorder.claims)
        verdict = await asyncio.to_thread(
            judge, self._simulator.log, self._scenario, self._types, stored, claims, lost=self._lost()
        )
        self._step("")
        return total(
            course,
            self._scenario,
            figures,
            verdict,
            seconds=seconds,
            viewers=viewers.present,
            compared=(len(stored), len(claims)),
            lagging=sum(claim.verdict == "lagging" for claim in claims),
            pushed=(self._http_viewers.open, self._http_viewers.pushes),
        )

    def _lost(self) -> list[Interval]:
        """When a served answer may have died before it was stored: up to a call's deadline before a
        death, and while the database was away.
        """
        spans = [*((at, at) for at in self._worker.deaths), *self._home.outages]
        return [(since - DEADLINE_SECONDS - 2, until + 1) for since, until in spans]

    # ── beside ──

    async def _quicken(self) -> None:
        """The symbols on the screen have a time to live of their own."""
        for symbol in self._symbols[:_SHOWN]:
            await _patiently(lambda symbol=symbol: self._set_ttl(symbol))  # type: ignore[misc] # mypy cannot infer a lambda with a default

    async def _set_ttl(self, symbol: str) -> None:
        await self._app.database.call(
            "SELECT livewell.set_ttl('quote', %s, %s * interval '1 second')", (symbol, self._scenario.quick_ttl_seconds)
        )

    async def _unpark(self) -> None:
        """What an operator does when a plan was extended: `livewell types resume` for what a wall
        has parked.

        Not by applying the files again: that makes a new version of the type, and answers to the
        old one are not stored.
        """
        await self._app.database.call(
            "SELECT livewell.pause_type(t.name, false) FROM livewell.data_type t WHERE t.parked_reason IS NOT NULL"
        )

    async def _every(self, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await act()
            except (DatabaseError, DatabaseUnavailable):
                continue  # the next time


async def apply_types(app: Livewell, files: Sequence[tuple[Path, Mapping[str, Any]]]) -> list[TypeDefinition]:
    """As `livewell types apply` does; answers the types."""
    applied = []
    for path, document in files:
        definition = read(document, path.name, private_hosts=[HOST])
        await apply(app.database, definition, path.name)
        if isinstance(definition, TypeDefinition):
            applied.append(definition)
    return applied


@asynccontextmanager
async def _opened(found: Home) -> AsyncIterator[Livewell]:
    app = Livewell(Settings.load(database_url=found.address, listen_url=found.address))
    await app.open()
    try:
        yield app
    finally:
        await app.close()


async def _patiently(act: Callable[[], Awaitable[Any]]) -> Any:
    """Through a short outage of the database."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return await act()
        except (DatabaseError, DatabaseUnavailable):
            if time.monotonic() > give_up:
                raise
            await asyncio.sleep(_LOOK_SECONDS)


def _check(tasks: Sequence[asyncio.Task[None]]) -> None:
    """A task beside that has failed is a mistake of the demo's own."""
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise LivewellError(f"a part of the demo failed: {error}") from error


def _hint(processes: Mapping[str, int | None], folder: Path | None, link: str) -> str:
    if processes["worker"] is None or processes["simulator"] is None:
        return ""
    kills = "   ".join(f"kill -9 {pid}  ({name})" for name, pid in processes.items() if pid is not None)
    hint = f"try it:  {kills}   Ctrl-C ends"
    if folder is None:
        return hint
    livewell = f"LIVEWELL_DATA_DIR={_short(folder)} {_command()}"
    again = f"\nanother login link:  {livewell} keys login --address {link.partition('/login')[0]}" if link else ""
    return f"{hint}\nlook yourself:  {livewell} watch quote AAPL{again}"


def _command() -> str:
    """`livewell`, as this shell finds it."""
    return "livewell" if shutil.which("livewell") else _short(Path(sys.executable).with_name("livewell"))


def _short(folder: Path) -> str:
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)
