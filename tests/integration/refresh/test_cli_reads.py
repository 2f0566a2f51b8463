"""`livewell get` and `livewell watch` beside a real worker."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from livewell import Settings
from tests.support.market import Market


async def livewell(settings: Settings, *arguments: str) -> tuple[int | None, str, str]:
    """Run the command line in a process of its own."""
    assert settings.database_url is not None
    environment = {**os.environ, "DATABASE_URL": settings.database_url.get_secret_value()}
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "livewell.cli",
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await child.communicate()
    return child.returncode, out.decode(), err.decode()


async def test_get_waits_for_the_refresh_and_prints_it(market: Market, livewell_settings: Settings) -> None:
    """JSON for programs, facts for people; a key that does not exist is a problem."""
    async with market.working():
        code, out, err = await livewell(livewell_settings, "get", "quote", "AAPL", "--wait", "20s", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["verdict"] == "fresh"
        code, out, _ = await livewell(livewell_settings, "get", "quote", "AAPL")
        assert (code, out.split()[:2]) == (0, ["verdict", "fresh"])
        code, out, _ = await livewell(livewell_settings, "get", "quote", "NOPE1", "--wait", "20s")
        assert (code, out.split()[:2]) == (1, ["verdict", "missing"])


async def test_get_says_why_it_cannot_be_refreshed_and_until_when(market: Market, livewell_settings: Settings) -> None:
    """X5: exit code 1, without waiting."""
    await market.scalar(
        "UPDATE livewell.limiter_credential SET quiet_until = livewell.now() + interval '10 minutes' RETURNING 1"
    )
    code, out, _ = await livewell(livewell_settings, "get", "quote", "AAPL", "--wait", "290s")

    assert code == 1
    assert "the upstream asked for silence; ask again in" in out


async def test_watch_prints_a_line_for_every_change(market: Market, livewell_settings: Settings) -> None:
    """First what there is, then what the refresh brought."""
    async with market.working():
        code, out, err = await livewell(livewell_settings, "watch", "quote", "MSFT", "--json", "--changes", "2")
    assert (code, err) == (0, "")
    verdicts = [json.loads(line)["verdict"] for line in out.splitlines()]
    assert verdicts[-1] == "fresh"
