"""Failure stories of other refresh systems (facts: failure stories), each as a test that would have caught it."""

from __future__ import annotations

import asyncio

import pytest

from livewell.apps.market.simulator.log import read_events
from livewell.db.scratch import TestClock
from livewell.refresh.reading import Reading
from tests.support.market import Market, quote


def calls(market: Market) -> list[dict[str, object]]:
    return [event for event in read_events(market.simulator.log) if event["event"] == "call"]


@pytest.fixture
async def read_once(market: Market) -> Reading:
    """One good value."""
    async with market.working():
        return await market.app.get("quote", "AAPL", wait="20s")


async def test_story_4_reading_an_old_value_does_not_make_it_fresh(
    market: Market, read_once: Reading, livewell_clock: TestClock
) -> None:
    """Freshness stamped on cache hits: however often it is read, its check time stays, and it goes stale."""
    for _ in range(5):
        livewell_clock.advance(20)
        again = await market.app.get("quote", "AAPL")
        assert (again.checked_at, again.fetched_at) == (read_once.checked_at, read_once.fetched_at)
    assert again.verdict == "stale"


async def test_story_5_a_value_that_outlived_its_time_is_shown_and_called_stale(
    market: Market, read_once: Reading, livewell_clock: TestClock
) -> None:
    """TTL equals schedule: data does not vanish when its time is over, and nothing calls it healthy meanwhile."""
    livewell_clock.advance(61)
    after = await market.app.get("quote", "AAPL")
    assert (after.value, after.verdict, after.usable) == (read_once.value, "stale", False)


async def test_story_6_the_quote_time_is_the_sources_own(market: Market) -> None:
    """`now()` as quote time: while the exchange is closed the source says when it closed, and the value is lagging, not fresh."""
    await market.simulator.turn(sessions=True)
    await market.apply(quote(answer='max_source_age = "15m"'))
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="20s")
    assert reading.source_at is not None
    assert reading.fetched_at is not None
    assert reading.source_at.timestamp() == calls(market)[0]["source_at"]
    late = (reading.fetched_at - reading.source_at).total_seconds() > 15 * 60
    assert reading.verdict == ("lagging" if late else "fresh")


async def test_story_8_a_crowd_does_not_storm_a_failing_upstream(market: Market) -> None:
    """Thundering herd after failure: a hundred waiters of a failing key, twice, are one call; the answer is cached as what it is, a failure."""
    await market.simulator.turn(faults={"error_500": 1.0})
    async with market.working():
        for _ in range(2):
            readings = await asyncio.gather(*(market.app.get("quote", "AAPL", wait="1s") for _ in range(100)))
            assert {(reading.verdict, reading.reason) for reading in readings} <= {
                ("failing", "transient"),
                ("missing", None),
            }
    assert len(calls(market)) == 1


async def test_story_12_a_refused_source_is_never_replaced_by_another(market: Market) -> None:
    """Silent provider swap: after a 403 there is no value, and the reading says why; only the named upstream was ever called."""
    await market.simulator.turn(exclusive_paths=["/stable/quote"])
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="20s")
        again = await market.app.get("quote", "AAPL", wait="1s")
    assert (reading.value, reading.verdict, reading.reason) == (None, "failing", "entitlement_type")
    assert (again.value, again.verdict) == (None, "failing")
    assert len(calls(market)) == 1
