"""Does `livewell plan` foresee what happens?

`python -m bench.plan`, about 10 minutes for the three loads.

    the market demo's parts (simulator, worker, viewers who come and go) ──warm-up──▶ plan, from the registry and the ledger ──▶ measure ──▶ foreseen beside seen

Loads are set by how many symbols viewers look at: half the calls that the upstream allows are
needed, all of them, twice as many. The plan is not told. Calls are counted by the simulator, bytes
by the limiter's own books, and the share that is not stale by the database, every two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from livewell.app import Livewell
from livewell.apps.kit.postgres import home
from livewell.apps.kit.processes import kept
from livewell.apps.market.demo.figures import Gauge
from livewell.apps.market.demo.processes import KeptSimulator, kept_worker, worker_environment
from livewell.apps.market.demo.run import apply_types
from livewell.apps.market.demo.scenario import CALLS_PER_MINUTE, HOST, QUIET, Scenario, documents
from livewell.apps.market.demo.viewers import SimulatedViewers
from livewell.apps.market.simulator import Simulator
from livewell.apps.market.simulator.data.universe import Universe
from livewell.db import migrate
from livewell.refresh.plan.report import make_plan
from livewell.refresh.subscribe.subscriptions import Subscriptions
from livewell.settings import Settings

WITHIN = 0.10
_TTL_SECONDS, _QUICK_TTL_SECONDS, _QUICK = 30, 10, 8
_SYMBOLS_MAX = 1_000
_LOOK_SECONDS = 2.0
_GOOD = ("fresh", "lagging", "unverifiable")  # not stale by its rule
_USED = "SELECT coalesce(sum(u.units), 0)::float8 FROM livewell.limiter_usage u"
_SET_TTL = "SELECT livewell.set_ttl('quote', %s, %s * interval '1 second')"


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was foreseen and seen."""

    load: str
    what: str
    foreseen: float
    seen: float

    @property
    def ratio(self) -> float:
        """1: as foreseen."""
        return self.foreseen / self.seen if self.seen else float("inf")

    @property
    def good(self) -> bool:
        """Within a tenth."""
        return abs(self.ratio - 1) <= WITHIN


@dataclass(frozen=True, slots=True)
class Stage:
    """What is running."""

    app: Livewell
    simulator: Simulator
    symbols: list[str]


def load_plan(load: str) -> Scenario:
    """Make a scenario whose symbols need this share of the calls allowed.

    They are looked at all the time, and each needs a call of its own. "batch": as many symbols as
    need half of the calls in this way, but asked for by calls of up to fifty; "demo": as the demo
    has it.
    """
    if load == "demo":
        return QUIET
    if load == "batch":
        return replace(load_plan("0.5"), batch=True)
    quick = _QUICK * 60 / _QUICK_TTL_SECONDS
    others = (float(load) * CALLS_PER_MINUTE - quick) * _TTL_SECONDS / 60
    return replace(
        QUIET,
        symbols=_QUICK + round(others),
        pages=1,  # read once each and good for minutes: all of them are there after the warm-up
        looks=6,
        steepness=0.7,
        quote_ttl=f"{_TTL_SECONDS}s",
        quick_ttl_seconds=_QUICK_TTL_SECONDS,
        batch=False,
    )


@asynccontextmanager
async def staged(played: Scenario, folder: Path, seed: int) -> AsyncIterator[Stage]:
    """Postgres, the simulator and a worker: the demo without its server and screen."""
    settings = Settings.load()
    symbols = Universe(_SYMBOLS_MAX).symbols[: played.symbols]
    async with (
        Simulator(folder / "fmp.log", seed=seed, symbols=_SYMBOLS_MAX, knobs=played.knobs()) as simulator,
        home(settings, _say) as found,
    ):
        await asyncio.to_thread(migrate.migrate, found.address, roles=settings.roles)
        app = Livewell(Settings.load(database_url=found.address, listen_url=found.address))
        await app.open()
        environment = worker_environment(
            found.address, slots=2 * played.concurrency, credentials=played.environment, host=HOST
        )
        try:
            async with kept([kept_worker(folder, environment, _say), KeptSimulator(simulator, _say)]):
                await apply_types(app, documents(played, simulator.url))
                yield Stage(app, simulator, list(symbols))
        finally:
            await app.close()


async def measure(load: str, warm_seconds: float, seconds: float, seed: int) -> list[Figure]:
    """Warm up, plan, watch."""
    played = load_plan(load)
    with tempfile.TemporaryDirectory(prefix="livewell-plan-") as folder:
        async with staged(played, Path(folder), seed) as stage:
            viewers = Subscriptions(stage.app.database, stage.app.nudger)
            crowd = SimulatedViewers(viewers, played, stage.symbols, rng=random.Random(seed))
            coming = asyncio.create_task(crowd.run())
            try:
                for symbol in stage.symbols[:_QUICK]:
                    await stage.app.database.call(_SET_TTL, (symbol, played.quick_ttl_seconds))
                await asyncio.sleep(warm_seconds)
                return await _compare(stage, load, seconds)
            finally:
                coming.cancel()
                await asyncio.wait([coming])


async def _compare(stage: Stage, load: str, seconds: float) -> list[Figure]:
    [foreseen] = (await make_plan(stage.app.database)).upstreams
    gauge = Gauge(stage.app.database, stage.simulator, [])
    loop = asyncio.get_running_loop()
    calls, used, began = (await stage.simulator.counts())["calls"], await _used(stage), loop.time()
    shares = []
    while loop.time() - began < seconds:
        rows = (await gauge.take()).rows
        shares.append(sum(row.verdict in _GOOD for row in rows) / max(1, len(rows)))
        await asyncio.sleep(_LOOK_SECONDS)
    minutes = (loop.time() - began) / 60
    return [
        Figure(
            load,
            "calls a minute",
            foreseen.calls * 60,
            ((await stage.simulator.counts())["calls"] - calls) / minutes,
        ),
        Figure(load, "bytes a minute", foreseen.units * 60, (await _used(stage) - used) / minutes),
        Figure(load, "share fresh", foreseen.freshness.share_fresh, statistics.fmean(shares)),
    ]


async def _used(stage: Stage) -> float:
    return float((await stage.app.database.call(_USED))[0][0])


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def main() -> int:
    """Exit 1 when a figure is off by more than a tenth."""
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--loads",
        default="0.5,1,2",
        help="needed calls, as shares of those allowed; batch: the keys of 0.5 by calls of fifty; demo: the "
        "demo as it is",
    )
    parser.add_argument("--warm", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures: list[Figure] = []
    for load in given.loads.split(","):
        found = asyncio.run(measure(load, given.warm, given.seconds, given.seed))
        figures += found
        for one in found:
            if given.json:
                told = {"load": one.load, "what": one.what, "foreseen": one.foreseen, "seen": one.seen}
                print(json.dumps({**told, "ratio": one.ratio, "good": one.good}), flush=True)
            else:
                print(
                    f"{one.load:>5} x  {one.what:15} foreseen {one.foreseen:12,.2f}   seen {one.seen:12,.2f}   "
                    f"ratio {one.ratio:.3f}",
                    flush=True,
                )
    return 0 if all(one.good for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
