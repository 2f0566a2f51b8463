"""Contract 6a: bytes come from the wire.

What the budget is charged is what the upstream itself counted as sent, not what a body happens to
weigh after it was parsed.

Proven by breaking it: with the length of the parsed body instead (the second test), the two ledgers
differ.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from livewell import Settings
from livewell.apps.market.simulator.oracle.log import read_events
from livewell.refresh.fetch.upstream_call import Fetched
from tests.support.market import Market, market


async def charged_and_sent(opened: Market) -> tuple[int, int]:
    """What the budget was charged, and what the simulator's log says it sent, faulty answers and walls included."""
    async with opened.working():
        for place, symbol in enumerate(opened.symbols(12)):
            if place % 3 == 1:
                await opened.simulator.next("error_500")
            elif place % 3 == 2:
                await opened.simulator.next("html")
            await opened.app.get("quote", symbol, wait="20s")
    charged = await opened.scalar("SELECT sum(units)::bigint FROM livewell.limiter_usage")
    calls = [event for event in read_events(opened.simulator.log) if event["event"] == "call"]
    assert len(calls) >= 12
    return charged, sum(int(event["bytes"]) for event in calls)


LIMITS = 'counts = "wire"\nbudget = "1GB/30d"\nbreaker = false'


async def test_the_budget_is_charged_what_the_upstream_sent(livewell_settings: Settings, tmp_path: Path) -> None:
    """To the byte: status line, headers and body, compressed as they came."""
    async with market(livewell_settings, tmp_path, limits=LIMITS) as opened:
        charged, sent = await charged_and_sent(opened)
    assert charged == sent


async def test_counting_anything_else_is_noticed(
    livewell_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contract broken on purpose: decoded bodies only."""

    def decoded(fetched: Fetched, _: str) -> int:
        return fetched.decoded_bytes

    monkeypatch.setattr(Fetched, "counted", decoded)
    async with market(livewell_settings, tmp_path, limits=LIMITS) as opened:
        charged, sent = await charged_and_sent(opened)
    assert charged != sent
