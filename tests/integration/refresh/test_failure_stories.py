"""Failure stories of other refresh systems, from public reports, each as a test that would have caught it.

     1  the ten-hour retry: a bandwidth wall taken for a rate limit            codemug/aiofmp
     2  six consumers, one wall: each of them discovered it anew               windwardline/levelflow-cloud
     3  the wrong wall, for four days: "upgrade your plan" means two things    the same
     4  freshness stamped on cache hits                                        koala73/worldmonitor#1138, #1899
     5  time to live equals schedule: empty panels, healthy health             koala73/worldmonitor#3450
     6  now() as quote time                                                    mirror29/inalpha#62
     7  200 with Friday's price on Monday                                      finnhubio/Finnhub-API#583
     8  thundering herd after failure                                          koala73/worldmonitor#270
     9  ghost viewers                                                          hasura/graphql-engine#9963
    12  silent provider swap                                                   HKUDS/Vibe-Trading#1270

10, 11 and 13 are about deliveries, alerts and exports. How the words of walls 1 and 3 are told
apart: tests/unit/outbound/test_wall.py; 7 in trading time: tests/sql/refresh/test_verdict.py; 9 in
SQL: tests/sql/refresh/test_dispatch_due.py.
"""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from livewell.apps.market.simulator.oracle.log import read_events
from livewell.db.scratch import TestClock
from livewell.refresh.reading import Reading
from livewell.testing.processes import eventually_async
from tests.support.market import Market, quote


def calls(market: Market) -> list[dict[str, object]]:
    return [event for event in read_events(market.simulator.log) if event["event"] == "call"]


@pytest.fixture
async def read_once(market: Market) -> Reading:
    """One good value."""
    async with market.working():
        return await market.app.get("quote", "AAPL", wait="20s")


async def test_story_1_a_bandwidth_wall_is_not_retried_for_ten_hours(
    market: Market, livewell_clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody calls for six hours, however often somebody asks.

    Then one probe, and silence again.
    """
    # A worker waits for the six hours in pieces of 30 s, on a clock that this test does not move.
    monkeypatch.setattr("livewell.queue.worker.claim_limited._WAIT_SECONDS_MAX", 0.5)
    await market.upstream("concurrency = 1\nbreaker = true")
    await market.simulator.turn(bandwidth_bytes_max=1, bandwidth_bytes_used=2)
    async with market.working():

        async def refused() -> bool:
            reading = await market.app.get("quote", "AAPL", wait="300ms")
            return (reading.value, reading.reason) == (None, "bandwidth_wall")

        await eventually_async(refused, timeout=20, what="the wall is told")
        for _ in range(5):
            livewell_clock.advance(3600)
            await market.app.get("quote", "AAPL", wait="300ms")
            await market.app.get("quote", "MSFT", wait="300ms")
        assert len(calls(market)) == 1
        livewell_clock.advance(3700)
        await market.app.get("quote", "AAPL", wait="1s")
        await eventually_async(lambda: len(calls(market)) == 2, timeout=30, what="a probe")
        await market.app.get("quote", "MSFT", wait="1s")
    assert len(calls(market)) == 2


async def test_story_2_one_consumer_meets_the_wall_and_all_know_it(market: Market) -> None:
    """Ninety-seven watched symbols, readers, and a worker that starts later.

    One call in all, and no attempt is burnt.
    """
    await market.upstream("concurrency = 1\nbreaker = true")
    await market.simulator.turn(bandwidth_bytes_max=1, bandwidth_bytes_used=2)
    symbols = market.symbols(97)
    session = "5d6c1f0a-0000-4000-8000-000000000001"
    await market.rows("SELECT livewell.open_session(%s, 'page')", session)
    await market.rows("SELECT livewell.subscribe(%s, 'page', %s, %s)", session, ["quote"] * 97, symbols)
    async with market.working(), market.working():
        await eventually_async(lambda: len(calls(market)) >= 1, timeout=30, what="the first call")
        await asyncio.gather(*(market.app.get("quote", symbol, wait="1s") for symbol in symbols[:20]))
    async with market.working():
        await asyncio.gather(*(market.app.get("quote", symbol, wait="1s") for symbol in symbols[20:40]))
    assert len(calls(market)) == 1
    assert await market.scalar("SELECT coalesce(max(attempt), 0) FROM livewell.job") == 0
    assert await market.scalar("SELECT count(*) FROM livewell.dead_job") == 0


async def test_story_3_a_plans_wall_is_not_taken_for_an_empty_account(market: Market) -> None:
    """Both say "upgrade your plan".

    A symbol outside the plan parks that key, is warned of, and stops nobody else.
    """
    await market.upstream("breaker = true")
    await market.simulator.turn(locked_symbols=["TSLA"])
    async with market.working():
        locked = await market.app.get("quote", "TSLA", wait="20s")
        assert (locked.verdict, locked.reason) == ("failing", "entitlement_key")
        assert (await market.app.get("quote", "AAPL", wait="20s")).verdict == "fresh"
    assert await market.scalar("SELECT max(open_until) FROM livewell.limiter_credential") is None
    assert await market.scalar("SELECT count(*) FROM livewell.warning WHERE what = 'quote: entitlement_key'") == 1


async def test_a_refused_refresh_is_told_in_the_log_with_what_was_seen(market: Market) -> None:
    """Key, reason and what the upstream answered, one bad key beside a good one.

    R23; seen failing on 0.5.0: no line "refresh refused" was logged.
    """
    await market.simulator.turn(locked_symbols=["TSLA"])
    with capture_logs() as lines:
        async with market.working():
            await market.app.get("quote", "TSLA", wait="20s")
            await market.app.get("quote", "AAPL", wait="20s")
    told = [line for line in lines if line["event"] == "refresh refused"]
    assert {(line["type"], line["key"], line["reason"]) for line in told} == {("quote", "TSLA", "entitlement_key")}
    assert "402" in told[0]["seen"] or "plan" in told[0]["seen"]
    assert len(told) <= 5
    assert not [line for line in lines if line["event"].startswith("job failed")]


async def test_story_4_reading_an_old_value_does_not_make_it_fresh(
    market: Market, read_once: Reading, livewell_clock: TestClock
) -> None:
    """Freshness stamped on cache hits.

    However often it is read, its check time stays, and it goes stale.
    """
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
    """`now()` as quote time: while the exchange is closed the value is lagging, not fresh.

    The source says when the exchange closed.
    """
    await market.simulator.turn(sessions=True)
    await market.apply(quote(answer='max_source_age = "15m"'))
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="20s")
    assert reading.source_at is not None
    assert reading.fetched_at is not None
    assert reading.source_at.timestamp() == calls(market)[0]["source_at"]
    late = (reading.fetched_at - reading.source_at).total_seconds() > 15 * 60
    assert reading.verdict == ("lagging" if late else "fresh")


async def test_story_7_a_good_answer_with_an_old_price_is_not_fresh(market: Market) -> None:
    """200, valid, fetched just now, and from three days ago: lagging, and not usable."""
    await market.apply(quote(answer='max_source_age = "15m"'))
    await market.simulator.turn(clock_shift_seconds=-3 * 86_400)
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="20s")
    assert (reading.verdict, reading.usable, reading.reason) == ("lagging", False, None)
    assert calls(market)[0]["status"] == 200


async def test_story_9_viewers_who_are_gone_cost_nothing(market: Market, livewell_clock: TestClock) -> None:
    """Nobody said goodbye and nobody has swept.

    Five minutes after the last sign of life no call is made.
    """
    await market.apply(quote(ttl="1s"))
    session = "5d6c1f0a-0000-4000-8000-000000000002"
    await market.rows("SELECT livewell.open_session(%s, NULL)", session)
    await market.rows("SELECT livewell.subscribe(%s, NULL, '{quote}', '{AAPL}')", session)
    async with market.working():
        await eventually_async(lambda: len(calls(market)) >= 2, timeout=30, what="it is kept fresh while watched")
        livewell_clock.advance(301)

        async def parked() -> bool:
            return bool(await market.scalar("SELECT due_at IS NULL FROM livewell.ledger"))

        await eventually_async(parked, timeout=30, what="it is parked")
        before = len(calls(market))
        livewell_clock.advance(60)  # sixty times its time to live,
        await asyncio.sleep(0.5)  # and more than two due checks
        assert len(calls(market)) == before
    assert await market.scalar("SELECT livewell.count_viewers('quote', 'AAPL')") == 0


async def test_story_8_a_crowd_does_not_storm_a_failing_upstream(market: Market) -> None:
    """Thundering herd after failure: a hundred waiters of a failing key, twice, are one call.

    The answer is cached as what it is, a failure.
    """
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
    """Silent provider swap: after a 403 there is no value, and the reading says why.

    Only the named upstream was ever called.
    """
    await market.simulator.turn(exclusive_paths=["/stable/quote"])
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="20s")
        again = await market.app.get("quote", "AAPL", wait="1s")
    assert (reading.value, reading.verdict, reading.reason) == (None, "failing", "entitlement_type")
    assert (again.value, again.verdict) == (None, "failing")
    assert len(calls(market)) == 1
