"""What the lines of the refresh benchmark share.

A database with types, the simulated upstream, and who watches what.

Types are the shipped quote, with another time to live and the rule `age`: by the rule of the
shipped one nothing is stale while the exchange is closed, and a benchmark would measure the time of
day. One call is for one key, unless a line wants the shipped batch endpoint, which takes fifty.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.refresh.sizes import Sizes
from bench.server import Database, Server
from bench.system import python_system
from livewell import Livewell, Settings
from livewell.apps.market.simulator.data.universe import Universe
from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.simulator import Simulator
from livewell.refresh.definition.document import read
from livewell.refresh.registry.apply import apply

SYSTEM = python_system("livewell", "bench.refresh.child")
HOST = "127.0.0.1"
CREDENTIAL = "BENCH_UPSTREAM_KEY"
UPSTREAM = "sim"
TYPE = "quote"
# What the shipped upstream has. Lines without a limit leave it out.
FMP_LIMITS: Mapping[str, Any] = {
    "rate": "300/min",
    "burst": 10,
    "reserve": "10%",
    "concurrency": 10,
    "per_key": 1,
    "breaker": True,
}


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement of the engine needs."""

    server: Server
    sizes: Sizes
    folder: Path
    say: Callable[[str], None]
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    @contextmanager
    def simulator(self, *, symbols: int, **knobs: Any) -> Iterator[Simulator]:
        """The upstream, in a process of its own with a log of its own."""
        log = self.folder / f"simulator-{next(self._numbers)}.log"
        simulator = asyncio.run(Simulator.start(log, symbols=max(symbols, 2), knobs=Knobs(**knobs)))
        try:
            yield simulator
        finally:
            asyncio.run(simulator.kill())

    @contextmanager
    def database(self, upstream: Simulator, **changes: Any) -> Iterator[Database]:
        """A database with one type of this upstream, and nothing in it."""
        with self.server.database(self.server.template("refresh", migrate)) as database:
            declare(database.dsn, upstream.url, **changes)
            yield database


def symbols(n: int) -> list[str]:
    """The first symbols that a simulator of at least so many knows."""
    return list(Universe(max(n, 2)).symbols[:n])


def settings(dsn: str) -> Settings:
    """The defaults, and that the simulator may be called."""
    return Settings(database_url=SecretStr(dsn), outbound_private_hosts=(HOST,))


def migrate(dsn: str) -> None:
    """Only the tables."""

    async def run() -> None:
        app = Livewell(settings(dsn))
        await app.open(apply_migrations=True)
        await app.close()

    asyncio.run(run())


def declare(
    dsn: str,
    url: str,
    *,
    limits: Mapping[str, Any] | None = None,
    types: Sequence[str] = (TYPE,),
    batch: bool = False,
    **changes: Any,
) -> None:
    """The upstream and its types; changes are those of [type]."""

    async def run() -> None:
        async with Livewell(settings(dsn)) as app:
            for document in (_upstream(url, limits or {}), *(_type(name, changes, batch=batch) for name in types)):
                await apply(app.database, read(document, "bench", private_hosts=[HOST]), "bench")

    asyncio.run(run())


def _upstream(url: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "upstream": {
            "name": UPSTREAM,
            "base_url": url,
            "credential_in": "header:apikey",
            "credentials": [CREDENTIAL],
            "vocabulary": "fmp",
            **limits,
        }
    }


def _type(name: str, changes: Mapping[str, Any], *, batch: bool) -> dict[str, Any]:
    shipped = files("livewell.apps.market") / "types" / "quote.toml"
    document = tomllib.loads(shipped.read_text())
    document["type"] |= {"name": name, "upstream": UPSTREAM, "ttl": "1h", **changes}
    document["answer"] = {key: value for key, value in document["answer"].items() if key != "calendar"}
    document["answer"]["rule"] = "age"
    if not batch:
        del document["fetch"]["batch"]
    return document
