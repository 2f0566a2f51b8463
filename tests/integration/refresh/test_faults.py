"""What a hostile upstream cannot do.

Every faulty answer leaves the stored value and its age as they were, has its own reason, and the
next good answer is stored.

F-D1, F-D2, F-D3, F-D9, F-D10, F-D11, F-D12, F-D13, F-D14, F-D17 for the whole way from the wire to
the table; the simulator's own log is the oracle.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from livewell.apps.market.simulator import credential_name
from livewell.apps.market.simulator.oracle.log import read_events
from tests.support.market import CREDENTIAL, Market

REASONS = {
    "empty_array": {"empty"},  # F-D1: the key had data
    "empty_object": {"empty"},
    "html": {"html"},  # F-D2
    "html_as_json": {"html"},
    "truncated": {"not_json", "truncated"},  # F-D3
    "cut_off": {"truncated", "connection"},
    "reset": {"connection"},
    "closed": {"connection"},
    "error_500": {"transient"},
    "error_message": {"error_object", "transient"},
    "error_short": {"error_object", "transient"},
    "renamed_field": {"missing_field"},  # F-D17
    "number_as_string": {"wrong_type"},
    "wrong_symbol": {"wrong_key"},  # F-D9
    "future_time": {"future_source"},  # F-D11
    "nan": {"bad_number", "not_json"},  # F-D12
    "infinite": {"bad_number", "not_json"},
    "long_number": {"bad_number", "out_of_bounds"},
    "deep": {"too_deep", "not_json"},
    "nul": {"bad_text"},
    "surrogate": {"bad_text", "not_json"},
    "duplicate_key": {"not_json", "wrong_shape", "bad_text", "duplicate_row"},
    "not_utf8": {"not_utf8"},
    "huge_body": {"too_large"},  # F-D13
    "gzip_bomb": {"bomb", "too_large"},  # F-D14
}


@pytest.fixture
async def prepared(market: Market) -> Market:
    """Retries come at once, so that the next good answer does.

    And no breaker, for ten failures in a row of tests would open it.
    """
    await market.upstream("breaker = false")
    await market.rows("UPDATE livewell.queue SET backoff_base_seconds = 0.05, backoff_cap_seconds = 0.05")
    return market


async def test_no_faulty_answer_is_ever_stored(prepared: Market) -> None:
    """Old value kept with its old age, a typed reason each, a counted row each.

    And no key is frozen by it.
    """
    market = prepared
    symbols = market.symbols(len(REASONS))
    async with market.working():
        for symbol, (fault, reasons) in zip(symbols, REASONS.items(), strict=True):
            before = await market.app.get("quote", symbol, wait="20s")
            assert before.verdict == "fresh", fault
            await market.simulator.next(fault)
            during = await market.app.get("quote", symbol, max_age=0, wait="20s")
            assert during.reason in reasons, (fault, during)
            assert (during.value, during.source_at, during.checked_at, during.version) == (
                before.value,
                before.source_at,
                before.checked_at,
                before.version,
            ), fault
            after = await market.app.get("quote", symbol, max_age=0, wait="20s")
            assert (after.verdict, after.reason) == ("fresh", None), (fault, after)
    counts = await market.counts()
    assert sum(counts.get(reason, 0) for reasons in REASONS.values() for reason in reasons) >= len(REASONS)
    fired = [event["answer"] for event in read_events(market.simulator.log) if event["event"] == "call"]
    assert set(REASONS) <= set(map(str, fired)), sorted(set(REASONS) - set(map(str, fired)))


async def test_an_older_answer_is_counted_and_refused(prepared: Market) -> None:
    """F-D10: no error of anybody; the check time does not move, so the value goes on ageing."""
    market = prepared
    async with market.working():
        before = await market.app.get("quote", "AAPL", wait="20s")
        await market.simulator.next("stale_answer")
        during = await market.app.get("quote", "AAPL", max_age=0, wait="20s")
        assert (during.value, during.checked_at, during.reason) == (before.value, before.checked_at, None)
        assert (await market.counts())["older"] == 1
        after = await market.app.get("quote", "AAPL", max_age=0, wait="20s")
    assert after.checked_at is not None
    assert before.checked_at is not None
    assert after.checked_at > before.checked_at


async def test_drift_is_a_warning_that_names_the_field(prepared: Market) -> None:
    """F-D17: whoever is on call reads which field, at once, and nothing of it was stored."""
    market = prepared
    await market.simulator.next("renamed_field")
    async with market.working():
        reading = await market.app.get("quote", "AAPL", wait="20s")
        assert reading.value is None
    [(what, sample)] = await market.rows(
        "SELECT what, sample FROM livewell.warning WHERE what LIKE %s", "%missing_field"
    )
    assert what == "quote: missing_field"
    assert '"' in sample


async def test_an_added_field_is_accepted_and_counted(prepared: Market) -> None:
    """R14: not stored, not refused, a warning."""
    market = prepared
    await market.simulator.next("added_field")
    async with market.working():
        assert (await market.app.get("quote", "AAPL", wait="20s")).verdict == "fresh"
    assert (
        await market.scalar("SELECT count(*) FROM livewell.warning WHERE what = 'quote: the upstream added fields'")
        >= 1
    )


async def test_a_locked_symbol_parks_the_key_and_a_locked_path_the_type(prepared: Market) -> None:
    """X6: the plan's walls stop one key or one type, and nobody retries against them."""
    market = prepared
    await market.simulator.turn(locked_symbols=["TSLA"])
    async with market.working():
        locked = await market.app.get("quote", "TSLA", wait="20s")
        assert (locked.verdict, locked.reason) == ("failing", "entitlement_key")
        assert (await market.app.get("quote", "AAPL", wait="20s")).verdict == "fresh"
        await market.app.get("quote", "TSLA", wait="1s")
        await market.simulator.turn(locked_paths=["/stable/quote"])
        assert (await market.app.get("quote", "MSFT", wait="20s")).reason == "entitlement_type"
        await market.app.get("quote", "IBM", wait="1s")
    asked = [tuple(event["keys"]) for event in read_events(market.simulator.log) if event["event"] == "call"]
    # The refusal of MSFT came on a connection that had carried AAPL: believed when a connection of
    # its own says the same (ADR 0011).
    assert asked == [("TSLA",), ("AAPL",), ("MSFT",), ("MSFT",)]


async def test_the_bandwidth_wall_stops_the_upstream_for_hours(prepared: Market) -> None:
    """Story 1: one call sees it, nobody calls again, no attempt is burnt."""
    market = prepared
    await market.upstream("breaker = true")
    await market.simulator.turn(bandwidth_bytes_max=1)
    await market.simulator.next("bandwidth")
    async with market.working():
        assert (await market.app.get("quote", "AAPL", wait="20s")).reason == "bandwidth_wall"
        for symbol in ("MSFT", "IBM"):
            assert (await market.app.get("quote", symbol, wait="1s")).verdict == "missing"
    calls = [event for event in read_events(market.simulator.log) if event["event"] == "call"]
    assert len(calls) == 1
    assert await market.scalar("SELECT max(attempt) FROM livewell.job") == 0
    hours = await market.scalar(
        "SELECT extract(epoch FROM open_until - livewell.now()) / 3600 FROM livewell.limiter_credential"
    )
    assert 5.9 < hours <= 6


@pytest.mark.parametrize("fault", ["suspended", "invalid_key"])
async def test_a_refused_account_stops_the_calls(prepared: Market, fault: str) -> None:
    """Five refusals in a row open the breaker, and the reading says why.

    So nobody goes on asking with a key that is not good.
    """
    market = prepared
    await market.upstream("breaker = true")
    await market.simulator.next(*[fault] * 50)
    async with market.working():
        readings = [await market.app.get("quote", symbol, wait="1s") for symbol in market.symbols(10)]
    assert readings[0].reason in ("suspended", "auth")
    calls = [event for event in read_events(market.simulator.log) if event["event"] == "call"]
    assert 5 <= len(calls) <= 8  # those in flight when it opened
    assert await market.scalar("SELECT open_until > livewell.now() FROM livewell.limiter_credential")


async def test_a_wall_before_one_credential_holds_up_nothing_that_another_can_fetch(
    prepared: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 429 that asks for hours of silence.

    The limiter keeps that credential silent, and the jobs go on with the other one.
    """
    market, other = prepared, "FMP_TEST_KEY_2"
    monkeypatch.setenv(other, "another-key-of-the-simulator")
    await market.apply(market.upstream_file().replace(f'["{CREDENTIAL}"]', f'["{CREDENTIAL}", "{other}"]'))
    refused = credential_name(os.environ[CREDENTIAL])
    await market.simulator.turn(confined=[{"faults": {"rate_huge": 1.0}, "credentials": [refused]}])
    wanted = set(market.symbols(10))
    async with market.working(), asyncio.timeout(30):
        async for reading in market.app.watch("quote", sorted(wanted)):
            if reading.verdict == "fresh":
                wanted.discard(reading.key)
            if not wanted:
                break
    calls = [event["credential"] for event in read_events(market.simulator.log) if event["event"] == "call"]
    assert 1 <= calls.count(refused) < len(calls)
