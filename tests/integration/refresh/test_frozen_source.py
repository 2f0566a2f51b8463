"""An upstream that answers 200 while its source stands still.

What is checked is not therefore fresh (R30).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from tests.support.market import Market, quote


async def test_a_frozen_source_turns_lagging_and_never_green_again(market: Market) -> None:
    """One of two symbols stands still.

    It is lagging as soon as its source is too old, within one time to live, although every call
    succeeds; the other one stays fresh.
    """
    await market.apply(quote(ttl="1s", answer='max_source_age = "3s"'))
    frozen_at = time.time()
    await market.simulator.turn(tick_seconds=1, frozen_at=frozen_at, frozen_symbols=["AAPL"])
    told: list[tuple[str, str, float]] = []
    async with market.working(), asyncio.timeout(60), aclosing(market.app.watch("quote", ["AAPL", "MSFT"])) as readings:
        async for reading in readings:
            told.append((reading.key, reading.verdict, time.time() - frozen_at))
            if told[-1][2] > 8 and {"AAPL", "MSFT"} == {key for key, _, age in told if age > 6}:
                break

    late = [verdict for key, verdict, age in told if key == "AAPL" and age > 3 + 1 + 1]
    assert set(late) <= {"lagging", "stale"}
    assert "lagging" in late
    assert ("MSFT", "fresh") in {(key, verdict) for key, verdict, age in told if age > 4}
    assert set(await market.counts()) <= {"stored", "unchanged", "corrected"}
