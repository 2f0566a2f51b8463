"""get and watch with a real worker and the simulated upstream; its own log is the oracle."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from livewell.apps.market.simulator.oracle.log import read_events
from livewell.errors import InvalidOption, UnknownType
from livewell.refresh.reading import Reading
from livewell.testing.processes import eventually_async
from tests.support.market import BATCH, PROFILE, Market, quote

SILENCE = "UPDATE livewell.limiter_credential SET quiet_until = livewell.now() + interval '10 minutes' RETURNING 1"


def calls(market: Market, path: str | None = None) -> list[dict[str, object]]:
    """What the simulator was asked."""
    found = [event for event in read_events(market.simulator.log) if event["event"] == "call"]
    return [event for event in found if path is None or str(event["path"]).endswith(path)]


async def first(market: Market, keys: list[str], verdict: str, *, data_type: str = "quote") -> dict[str, Reading]:
    """Watch until every key has this verdict."""
    seen: dict[str, Reading] = {}
    async with asyncio.timeout(30), aclosing(market.app.watch(data_type, keys)) as readings:
        async for reading in readings:
            seen[reading.key] = reading
            if len(seen) == len(keys) and all(one.verdict == verdict for one in seen.values()):
                return seen
    raise AssertionError("the watch ended")


async def test_a_cold_key_is_fetched_and_given(market: Market) -> None:
    """Fresh, with the source's own time, in one get; the second get costs no call."""
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="20s")
        assert reading.verdict == "fresh"
        assert reading.source_at is not None
        assert reading.value["timestamp"] == int(reading.source_at.timestamp())
        assert await market.app.get("quote", "AAPL", wait="20s") == reading
    [call] = calls(market, "/quote")
    assert call["source_at"] == reading.value["timestamp"]


async def test_fifty_readers_of_one_missing_key_cause_one_call(market: Market) -> None:
    """X5: all of them get the value of the one call."""
    async with market.working():
        readings = await asyncio.gather(*(market.app.get("quote", "MSFT", wait="20s") for _ in range(50)))
    assert {reading.verdict for reading in readings} == {"fresh"}
    assert len(calls(market, "/quote")) == 1


async def test_without_a_wait_what_there_is_is_given_at_once(market: Market) -> None:
    """No worker runs: missing, and a job waits."""
    reading = await market.app.get("quote", "AAPL")
    assert (reading.verdict, reading.value) == ("missing", None)
    assert await market.scalar("SELECT count(*) FROM livewell.job") == 1


async def test_a_wait_ends_with_the_truth(market: Market) -> None:
    """Nobody works: after the wait the reader is told what there is, and no connection was held meanwhile."""
    waiting = [asyncio.create_task(market.app.get("quote", "AAPL", wait="1s")) for _ in range(100)]

    async def demanded() -> bool:
        return bool(await market.scalar("SELECT count(*) FROM livewell.job") == 1)

    await eventually_async(demanded, timeout=10, what="they wait for a job")
    assert await market.scalar("SELECT 1") == 1  # the pool has ten connections, and a hundred wait
    assert {reading.verdict for reading in await asyncio.gather(*waiting)} == {"missing"}


async def test_what_cannot_come_is_not_waited_for(market: Market) -> None:
    """X5: the upstream asked for silence.

    The answer says so and until when, at once, and nothing is queued. Seen failing on 0.5.0: it was
    still waiting after 60 s.
    """
    await market.scalar(SILENCE)
    async with asyncio.timeout(60):
        reading = await market.app.get("quote", "AAPL", wait="290s")

    assert (reading.verdict, reading.value, reading.throttled) == ("missing", None, "upstream")
    assert reading.retry_at is not None
    assert await market.scalar("SELECT count(*) FROM livewell.job") == 0


async def test_bad_questions_are_refused_before_anything_is_asked(market: Market) -> None:
    """An unknown type, a key outside the pattern, too many keys."""
    with pytest.raises(UnknownType):
        await market.app.get("nosuch", "AAPL")
    with pytest.raises(InvalidOption):
        await market.app.get("quote", "../../etc")
    for keys in ([], "AAPL", ["a b"], [f"K{n}" for n in range(1001)]):
        with pytest.raises(InvalidOption):
            await anext(market.app.watch("quote", keys))
    assert await market.scalar("SELECT count(*) FROM livewell.ledger") == 0


async def test_a_watch_gives_the_state_first_and_then_what_changes(market: Market) -> None:
    """Missing, then fresh.

    Then every new price, and never the same version twice in a row with the same verdict.
    """
    await market.apply(quote(ttl="1s"))
    await market.simulator.turn(tick_seconds=1)
    seen: list[Reading] = []
    async with market.working(), asyncio.timeout(60), aclosing(market.app.watch("quote", ["AAPL"])) as readings:
        async for reading in readings:
            seen.append(reading)
            if reading.version >= 3:
                break
    assert seen[0].verdict == "missing"
    versions = [reading.version for reading in seen]
    assert versions == sorted(versions)
    assert await market.scalar("SELECT count(*) FROM livewell.viewer_session") == 0


async def test_what_is_stored_while_a_watch_begins_is_not_missed(market: Market) -> None:
    """Twenty watches of one key begin while it is being stored again and again.

    Each comes to the last version.
    """
    await market.apply(quote(ttl="1s"))
    await market.simulator.turn(tick_seconds=1)
    async with market.working():
        await market.app.get("quote", "AAPL", wait="20s")

        async def follow() -> int:
            async with aclosing(market.app.watch("quote", ["AAPL"])) as readings:
                async for reading in readings:
                    if reading.version >= 4:
                        return reading.version
            return 0

        async with asyncio.timeout(60):
            assert min(await asyncio.gather(*(follow() for _ in range(20)))) >= 4


async def test_a_type_without_a_source_time_is_unverifiable_at_best(market: Market) -> None:
    """X1: nobody can tell how old a profile is."""
    await market.apply(PROFILE)
    async with market.working():
        reading = await market.app.get("profile", "AAPL", wait="20s")
    assert (reading.verdict, reading.source_at) == ("unverifiable", None)


async def test_an_upstream_applied_while_the_worker_runs_is_served(market: Market) -> None:
    """No restart: another upstream, another queue, another type."""
    async with market.working():
        text = market.upstream_file().replace('name = "fmp"', 'name = "other"')
        await market.apply(text, quote("tick").replace('upstream = "fmp"', 'upstream = "other"'))
        assert (await market.app.get("tick", "AAPL", wait="20s")).verdict == "fresh"


async def test_a_worker_of_one_pool_leaves_the_others_alone(market: Market) -> None:
    """Restricted to types is restricted to their pool's queue."""
    await market.apply(quote("slow").replace("size_estimate = 700", 'size_estimate = 700\npool = "slow"'))
    async with market.working(queues=["refresh.fmp.slow"]):
        assert (await market.app.get("slow", "AAPL", wait="20s")).verdict == "fresh"
        assert (await market.app.get("quote", "AAPL", wait="1s")).verdict == "missing"


# -- one call for many keys, conditional calls ---------------------------------------------------


async def test_keys_of_a_batch_type_are_one_call(market: Market) -> None:
    """X3: thirty watched keys, one /batch-quote; a key the upstream does not know fails alone."""
    await market.apply(quote(batch=BATCH))
    symbols = market.symbols(30)
    async with market.working():
        readings = await first(market, symbols, "fresh")
        assert (await market.app.get("quote", "NOPE1", wait="20s")).verdict == "missing"
    assert {len(call["keys"]) for call in calls(market, "/batch-quote")} == {30}  # type: ignore[arg-type] # keys is a list
    assert {reading.value["price"] > 0 for reading in readings.values()} == {True}


async def test_a_refused_batch_call_is_repeated_singly_before_anyone_is_blamed(market: Market) -> None:
    """402 for the endpoint: each key is asked for alone, and no failure is counted.

    After three refusals in a row the endpoint is left alone.
    """
    await market.apply(quote(batch=BATCH, ttl="1s"))
    await market.simulator.turn(locked_paths=["/stable/batch-quote"])
    symbols = market.symbols(10)
    async with market.working():
        watch = asyncio.create_task(first(market, symbols, "never"))
        await eventually_async(lambda: len(calls(market, "/quote")) >= 60, timeout=29, what="six rounds")
        watch.cancel()
        await asyncio.wait([watch])
    # Three in a row, and what was under way when the third was refused; without the rule it is one
    # for each of six rounds.
    assert 1 <= len(calls(market, "/batch-quote")) <= 5
    counts = await market.counts()
    assert counts["singly"] >= 10
    assert set(counts) <= {"singly", "stored", "unchanged"}
    assert await market.scalar("SELECT parked_reason FROM livewell.data_type WHERE name = 'quote'") is None


async def test_not_modified_verifies_what_is_stored(market: Market) -> None:
    """304: checked_at moves, version does not, and hardly any bytes are spent."""
    await market.simulator.turn(etags=True, tick_seconds=3600)
    async with market.working():
        before = await market.app.get("quote", "AAPL", wait="20s")
        after = await market.app.get("quote", "AAPL", max_age=0, wait="20s")
    assert [call["status"] for call in calls(market, "/quote")] == [200, 304]
    assert (after.version, after.value, after.verdict) == (before.version, before.value, "fresh")
    assert before.checked_at is not None
    assert after.checked_at is not None
    assert after.checked_at > before.checked_at
    assert await market.counts() == {"stored": 1, "unchanged": 1}


async def test_a_restarted_worker_asks_whether_what_is_stored_has_changed(market: Market) -> None:
    """X3: the condition is in the ledger, not in the process.

    0.5.0: 200 and 200, with the whole body again. A type that was changed asks for everything: what
    it left out before is not stored.
    """
    await market.simulator.turn(etags=True, tick_seconds=3600)
    for _ in range(2):
        async with market.working():
            reading = await market.app.get("quote", "AAPL", max_age=0, wait="20s")
            assert reading.verdict == "fresh"
    await market.apply(quote(columns='volume = { type = "numeric", nullable = true }'))
    async with market.working():
        changed = await market.app.get("quote", "AAPL", max_age=0, wait="20s")

    asked = calls(market, "/quote")
    assert [call["status"] for call in asked] == [200, 304, 200]
    assert changed.value["volume"] is not None
    spent = dict(await market.rows("SELECT outcome, wire_bytes::integer FROM livewell.refresh_count"))
    assert spent["unchanged"] < spent["stored"] / 2  # a head alone, beside 700 bytes packed


async def test_a_condition_about_something_else_is_asked_again_without_it(market: Market) -> None:
    """304, but what is stored is not what the job asked about.

    Nothing is confirmed, and the whole value comes (X3).
    """
    await market.simulator.turn(etags=True, tick_seconds=3600)
    async with market.working():
        before = await market.app.get("quote", "AAPL", wait="20s")
    waiting = asyncio.create_task(market.app.get("quote", "AAPL", max_age=0, wait="20s"))

    async def queued() -> bool:
        return bool(await market.scalar("SELECT count(*) FROM livewell.job"))

    await eventually_async(queued)
    await market.rows("UPDATE livewell.ledger SET content_hash = 'x' RETURNING 1")
    async with market.working():
        after = await waiting

    assert [call["status"] for call in calls(market, "/quote")] == [200, 304, 200]
    assert (after.verdict, after.value) == ("fresh", before.value)
    assert (await market.counts())["forgotten"] == 1


async def test_what_the_upstream_says_of_its_limit_is_heard(market: Market) -> None:
    """429 with Retry-After: nobody calls before that time, the job costs no attempt, and the value comes then."""
    await market.simulator.turn(retry_after_seconds=2)
    await market.simulator.next("rate_seconds")
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="1s")
        assert (reading.verdict, reading.reason) == ("failing", "rate_wall")

        async def fresh() -> bool:
            return (await market.app.get("quote", "AAPL", wait="5s")).verdict == "fresh"

        await eventually_async(fresh, timeout=30, what="the key is fresh")
    refused, served = calls(market, "/quote")
    assert int(str(served["at_ns"])) - int(str(refused["at_ns"])) >= 1.9e9
