"""The doctor beside a system that runs.

Silent when all is well, and clear about what an upstream does to us.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from livewell import Settings
from livewell.apps.market.simulator.knobs import Knobs
from livewell.operations.doctor import examine
from livewell.testing.processes import eventually_async
from tests.integration.refresh.test_cli_reads import livewell
from tests.support.market import Market
from tests.support.market import market as opened_market


async def watching(market: Market, n: int) -> None:
    """Somebody watches so many symbols."""
    session = await market.scalar("SELECT gen_random_uuid()::text")
    await market.rows("SELECT livewell.open_session(%s, 'ann')", session)
    symbols = market.symbols(n)
    await market.rows("SELECT livewell.subscribe(%s, 'ann', %s, %s, 1000, NULL)", session, ["quote"] * n, symbols)


async def until(market: Market, query: str) -> None:
    """Until a question is answered with yes."""
    await eventually_async(lambda: market.scalar(query), 30, 0.05, what=query)


async def test_a_healthy_system_has_no_finding(market: Market, livewell_settings: Settings) -> None:
    """A worker, a viewer, fresh values; and the command says so and exits with 0."""
    await watching(market, 20)
    async with market.working():
        await until(market, "SELECT count(*) = 20 FROM livewell.ledger WHERE fetched_at IS NOT NULL")
        address = livewell_settings.database_url
        assert address is not None
        assert await examine(address.get_secret_value(), livewell_settings) == []
        code, out, err = await livewell(livewell_settings, "doctor", "--json")
        assert (code, json.loads(out)["ok"], err) == (0, True, "")
        code, out, _ = await livewell(livewell_settings, "doctor")
        assert (code, out.startswith("All is well")) == (0, True)


@pytest.mark.parametrize(
    ("knobs", "word", "reason"),
    [
        (Knobs(calls_max=1), "upstream_429", "rate_wall"),
        (Knobs(credentials=("somebody-elses",)), "upstream_credential", "auth"),
        (Knobs(bandwidth_bytes_max=1000, bandwidth_bytes_used=1000), "upstream_bandwidth", "bandwidth_wall"),
    ],
)
async def test_what_an_upstream_refuses_is_named(
    livewell_settings: Settings, tmp_path: Path, knobs: Knobs, word: str, reason: str
) -> None:
    """Its own answers, read by a real worker; the command exits with 1 and prints what mends it."""
    async with opened_market(livewell_settings, tmp_path, knobs=knobs) as market:
        await watching(market, 5)
        async with market.working():
            await until(market, f"SELECT EXISTS (SELECT FROM livewell.refresh_count WHERE outcome = '{reason}')")
            code, out, _ = await livewell(livewell_settings, "doctor", "--json")
            found = {one["word"]: one for one in json.loads(out)["findings"]}
            assert code == 1
            assert found[word]["subject"] == "quote"
            assert "fmp" in found[word]["command"]
            code, out, _ = await livewell(livewell_settings, "doctor")
            assert (code, found[word]["command"] in out) == (1, True)
            # Names and counts are no secrets: it said "upstream_credential: ***" and "the
            # credential: *** times".
            assert f"{word}: quote" in out
            assert "***" not in out
            assert found[word]["seen"] in out


async def test_the_screen_shows_what_is_fresh_and_what_waits(market: Market, livewell_settings: Settings) -> None:
    """`livewell state`, for people and for programs."""
    await watching(market, 5)
    async with market.working():
        await until(market, "SELECT count(*) = 5 FROM livewell.ledger WHERE fetched_at IS NOT NULL")
        code, out, err = await livewell(livewell_settings, "state")
        assert (code, err) == (0, "")
        assert "100.0% of 5 watched keys" in out
        assert "What is stuck?  nothing" in out
        assert "1 viewers in 1 sessions with 5 subscriptions" in out
        code, out, _ = await livewell(livewell_settings, "state", "--json")
        assert (code, json.loads(out)["refresh"]["viewers"]) == (0, 1)
