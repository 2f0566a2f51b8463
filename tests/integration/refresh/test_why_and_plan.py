"""Why and plan beside a real worker and the simulated upstream.

The answer changes as the key's life does (X4, X8).
"""

from __future__ import annotations

import asyncio
import uuid

from livewell.refresh.plan.report import make_plan
from livewell.refresh.subscribe.subscriptions import Subscriptions
from livewell.refresh.why import why_key
from tests.support.market import Market

UNTIL_SECONDS = 20


async def why_is(market: Market, key: str, reason: str) -> None:
    """Ask until it says so: what happens between is the worker's."""
    async with asyncio.timeout(UNTIL_SECONDS):
        while (await why_key(market.app.database, "quote", key)).reason != reason:  # noqa: ASYNC110 - the answer is asked for, nobody announces it
            await asyncio.sleep(0.02)


async def test_the_answer_follows_the_life_of_a_key(market: Market) -> None:
    """Never asked, no worker, fresh; and a key that the upstream does not know."""
    viewers = Subscriptions(market.app.database, market.app.nudger)
    session = await viewers.open()
    assert isinstance(session, uuid.UUID)
    await why_is(market, "AAPL", "never_asked")
    await viewers.subscribe(session, None, [("quote", "AAPL"), ("quote", "NOPE1")])
    await why_is(market, "AAPL", "no_worker")
    async with market.working():
        await why_is(market, "AAPL", "fresh")
        await why_is(market, "NOPE1", "missing")


async def test_the_plan_counts_what_was_measured(market: Market) -> None:
    """Ten watched quotes of a minute need ten calls a minute, of as many bytes as came."""
    viewers = Subscriptions(market.app.database, market.app.nudger)
    session = await viewers.open()
    assert isinstance(session, uuid.UUID)
    keys = market.symbols(10)
    await viewers.subscribe(session, None, [("quote", key) for key in keys])
    async with market.working():
        for key in keys:
            await why_is(market, key, "fresh")
    [found] = (await make_plan(market.app.database)).upstreams
    bytes_stored = await market.scalar(
        "SELECT sum(greatest(wire_bytes, decoded_bytes))::float8 FROM livewell.refresh_count"
    )

    assert (found.freshness.keys, found.types[0].measured) == (10, True)
    assert round(found.calls_needed * 60) == 10
    assert abs(found.units * 60.1 / bytes_stored - 1) < 0.01
