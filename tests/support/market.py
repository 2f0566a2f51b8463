"""An app, its types and the simulated upstream: what end-to-end tests of refreshing stand on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from livewell import Livewell, Settings
from livewell.apps.market.simulator.data.prices import Market as SimulatedMarket
from livewell.apps.market.simulator.knobs import Knobs
from livewell.apps.market.simulator.simulator import Simulator
from livewell.queue.worker.worker import Worker
from livewell.refresh.definition.document import read_file
from livewell.refresh.registry.apply import apply
from tests.support import canary
from tests.support.warm import WarmSimulator

CREDENTIAL = "FMP_TEST_KEY"
HOST = "127.0.0.1"

UPSTREAM = """
[upstream]
name = "fmp"
base_url = "{url}"
credential_in = "header:apikey"
credentials = ["{credential}"]
vocabulary = "fmp"
{limits}
"""

QUOTE = """
[type]
name = "{name}"
title = "Stock quote"
upstream = "fmp"
ttl = "{ttl}"
negative_ttl = "1h"
strategy = "on_demand"
size_estimate = 700

[fetch]
path = "/quote"
query = {{ symbol = "{{key}}" }}
key_pattern = "[A-Z0-9.^=-]{{1,20}}"
body_bytes_max = 100000
{batch}

[answer]
rows = "@"
kind = "one"
key = "symbol"
source_time = {{ field = "timestamp", format = "unix_seconds" }}
future_max = "5m"
rule = "age"
{answer}

[columns]
price = {{ type = "numeric", min = 0, above_min = true, max = 10000000 }}
timestamp = {{ type = "bigint" }}
{columns}

[sample]
key = "AAPL"
recorded = "2026-07-22"
body = '''[{{"symbol": "AAPL", "name": "Apple Inc.", "price": 232.8, "changePercentage": 2.1, "change": 4.79, "volume": 44489128, "dayLow": 226.65, "dayHigh": 233.13, "yearHigh": 260.1, "yearLow": 164.08, "marketCap": 3500823120000, "priceAvg50": 240.2278, "priceAvg200": 219.98755, "exchange": "NASDAQ", "open": 227.2, "previousClose": 228.01, "timestamp": 1738702801}}]'''
"""

PROFILE = """
[type]
name = "profile"
title = "Company profile"
upstream = "fmp"
ttl = "1d"
negative_ttl = "1h"
strategy = "on_demand"
size_estimate = 3000

[fetch]
path = "/profile"
query = { symbol = "{key}" }
key_pattern = "[A-Z0-9.^=-]{1,20}"
body_bytes_max = 100000

[answer]
rows = "@"
kind = "one"
key = "symbol"
rule = "age"

[columns]
companyname = { type = "text", from = "companyName", nullable = true, max_length = 300 }

[sample]
key = "AAPL"
recorded = "2026-07-22"
body = '''[{"symbol": "AAPL", "companyName": "Apple Inc."}]'''
"""

BATCH = 'batch = { path = "/batch-quote", query = { symbols = "{keys}" }, keys_max = 50, separator = "," }'


def quote(name: str = "quote", *, ttl: str = "1m", batch: str = "", answer: str = "", columns: str = "") -> str:
    """The type file of quotes."""
    return QUOTE.format(name=name, ttl=ttl, batch=batch, answer=answer, columns=columns)


class Market:
    """The app under test, opened, with the simulator behind its types."""

    def __init__(self, app: Livewell, simulator: Simulator) -> None:
        self.app = app
        self.simulator = simulator

    async def apply(self, *files: str) -> None:
        """Apply type and upstream files."""
        for number, content in enumerate(files):
            definition = read_file(content.encode(), f"file-{number}.toml", private_hosts=[HOST])
            await apply(self.app.database, definition, f"file-{number}.toml")

    def upstream_file(self, limits: str = "") -> str:
        """The upstream with these limits."""
        return UPSTREAM.format(url=self.simulator.url, credential=CREDENTIAL, limits=limits)

    async def upstream(self, limits: str = "") -> None:
        """Apply the upstream with these limits."""
        await self.apply(self.upstream_file(limits))

    def symbols(self, n: int) -> list[str]:
        """The first symbols that the simulator knows."""
        places = SimulatedMarket(0, 1000).universe.places
        return sorted(places, key=places.__getitem__)[:n]

    @asynccontextmanager
    async def working(self, *, slots: int = 20, **options: Any) -> AsyncIterator[Worker]:
        """A worker in this loop."""
        worker = self.app.worker(slots=slots, **options)
        running = asyncio.create_task(worker.run())
        await asyncio.wait([running, asyncio.create_task(worker.started.wait())], return_when=asyncio.FIRST_COMPLETED)
        try:
            yield worker
        finally:
            worker.stop()
            await running

    async def scalar(self, query: str, *params: object) -> Any:
        """The first column of the first row."""
        return (await self.app.database.call(query, params))[0][0]

    async def rows(self, query: str, *params: object) -> list[tuple[Any, ...]]:
        """All rows."""
        return await self.app.database.call(query, params)

    async def counts(self) -> dict[str, int]:
        """What became of refreshes, by outcome."""
        return dict(await self.rows("SELECT outcome, sum(n)::integer FROM livewell.refresh_count GROUP BY outcome"))


@asynccontextmanager
async def market(
    settings: Settings,
    folder: Path,
    *,
    knobs: Knobs | None = None,
    symbols: int = 1000,
    limits: str = "",
    **changes: Any,
) -> AsyncIterator[Market]:
    """Simulator, app, upstream and the quote type."""
    os.environ[CREDENTIAL] = canary.watch("test-key-of-the-simulator")
    settings = settings.model_copy(update={"outbound_private_hosts": (HOST,), **changes})
    app = Livewell(settings)
    async with WarmSimulator(folder / "simulator.log", symbols=symbols, knobs=knobs) as simulator:
        await app.open(settings=settings)
        try:
            opened = Market(app, simulator)
            await opened.upstream(limits)
            await opened.apply(quote())
            yield opened
        finally:
            await app.close()
