"""Contract 21: every upstream call has a hard deadline (R15: ten seconds, all of it).

Slow is failed.

Proven by breaking it: with a longer deadline the same upstreams keep the caller as long as they
like (the last test).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from livewell import Settings
from livewell.apps.market.simulator.simulator import Simulator
from livewell.outbound import Outbound
from livewell.refresh.definition.document import read_file
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.fetch.upstream_call import Fetched, fetch
from livewell.refresh.result import Failure
from tests.support.market import CREDENTIAL, HOST, UPSTREAM, quote

DEADLINE_SECONDS = 0.5


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[Simulator]:
    """An upstream that can be slow in every way."""
    async with Simulator(tmp_path / "log") as opened:
        yield opened


async def call(simulator: Simulator, fault: str, deadline_seconds: float) -> Fetched:
    """One call as the refresh task makes it."""
    upstream = read_file(
        UPSTREAM.format(url=simulator.url, credential=CREDENTIAL, limits="").encode(), "u", private_hosts=[HOST]
    )
    definition = read_file(quote().encode(), "t")
    assert isinstance(upstream, UpstreamDefinition)
    assert isinstance(definition, TypeDefinition)
    await simulator.next(fault)
    async with Outbound(allowed_hosts=[], private_hosts=[HOST], deadline_seconds=deadline_seconds) as outbound:
        return await fetch(
            outbound, definition, upstream, ["AAPL"], now=lambda: datetime.now(UTC), secret=SecretStr("any")
        )


@pytest.mark.parametrize("fault", ["never_answers", "slow_drip"])
async def test_a_slow_answer_is_a_failed_one(simulator: Simulator, fault: str) -> None:
    """F-D4, F-D5: silence and a byte a second end at the deadline, with what was received counted."""
    began = time.monotonic()
    fetched = await call(simulator, fault, DEADLINE_SECONDS)
    assert time.monotonic() - began < DEADLINE_SECONDS + 5
    assert isinstance(fetched.came, Failure)
    assert fetched.came.reason == "deadline"
    if fault == "slow_drip":
        assert fetched.wire_bytes > 0


def test_the_workers_deadline_is_ten_seconds() -> None:
    """R15; nobody can set a longer one by accident."""
    assert Outbound.from_settings(Settings())._deadline_seconds == 10


async def test_without_the_deadline_the_caller_is_kept(simulator: Simulator) -> None:
    """The contract broken on purpose."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            await call(simulator, "never_answers", 60)
