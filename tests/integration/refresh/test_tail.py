"""Of a history only what can still change is fetched again (R30, X3)."""

from __future__ import annotations

from typing import Any

from livewell.apps.market import type_files
from livewell.apps.market.simulator.oracle.log import read_events
from tests.support.market import Market

END_OF_DAY = next(path for path in type_files() if path.stem == "end_of_day").read_text()


async def apply_history(market: Market) -> None:
    """The shipped type end_of_day."""
    await market.apply(END_OF_DAY)


def asked(market: Market) -> list[dict[str, Any]]:
    """What the simulator was asked of histories."""
    return [
        event
        for event in read_events(market.simulator.log)
        if event["event"] == "call" and event["path"].endswith("/full")
    ]


async def refreshed(market: Market) -> None:
    """The value is checked once more."""
    reading = await market.app.get("end_of_day", "AAPL", max_age=0, wait="30s")
    assert reading.verdict == "fresh"


async def wire_bytes(market: Market) -> int:
    """What all of it cost so far."""
    return int(await market.scalar("SELECT sum(wire_bytes) FROM livewell.refresh_count"))


async def test_the_second_time_only_the_tail_is_asked_for(market: Market) -> None:
    """The first call has no `from`.

    The second asks for two windows, costs a tenth of the bytes, changes nothing, and the whole
    history stays.
    """
    await apply_history(market)
    async with market.working():
        await refreshed(market)
        whole, rows = await wire_bytes(market), await market.scalar("SELECT count(*) FROM livewell_data.end_of_day")
        await refreshed(market)
        tail = await wire_bytes(market) - whole

    first, second = asked(market)
    newest = await market.scalar("SELECT max(date) FROM livewell_data.end_of_day")
    assert "from" not in first["query"]
    assert (newest - type(newest).fromisoformat(second["query"]["from"])).days == 14
    assert rows > 200
    assert await market.scalar("SELECT count(*) FROM livewell_data.end_of_day") == rows
    assert await market.counts() == {"stored": 1, "unchanged": 1}
    assert tail < whole / 8


async def test_a_history_that_was_rewritten_is_fetched_whole(market: Market) -> None:
    """A split changes every price ever.

    The settled days of the tail are not what they were, so everything is asked for, and everything
    is right again.
    """
    await apply_history(market)
    async with market.working():
        await refreshed(market)
        before = await market.rows("SELECT date, close FROM livewell_data.end_of_day ORDER BY date")
        # As if the upstream had rewritten everything: what is stored, and the hash of it, are of
        # another history.
        await market.rows("UPDATE livewell_data.end_of_day SET close = close * 2 RETURNING 1")
        await market.rows("UPDATE livewell.ledger SET content_hash = sha256('a') || sha256('b') RETURNING 1")
        await refreshed(market)

    assert ["from" in call["query"] for call in asked(market)] == [False, True, False]
    assert await market.rows("SELECT date, close FROM livewell_data.end_of_day ORDER BY date") == before
    assert await market.counts() == {"stored": 1, "forgotten": 1, "corrected": 1}


async def test_a_type_that_was_changed_asks_for_everything(market: Market) -> None:
    """A new column would be empty for all that was settled."""
    await apply_history(market)
    async with market.working():
        await refreshed(market)
        await market.rows(
            "UPDATE livewell.data_type SET applied_at = livewell.now() WHERE name = 'end_of_day' RETURNING 1"
        )
        await refreshed(market)

    assert ["from" in call["query"] for call in asked(market)] == [False, False]
