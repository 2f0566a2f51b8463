"""A client that may call this machine, and the fake upstream beside it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from livewell.outbound import Outbound
from livewell.testing import FakeUpstream
from tests.integration.outbound.support import LOCAL
from tests.support.warm import WarmUpstream


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    async with Outbound(allowed_hosts=[], private_hosts=LOCAL) as client:
        yield client


@pytest.fixture
async def hasty() -> AsyncIterator[Outbound]:
    """The same with half a second for a call."""
    async with Outbound(allowed_hosts=[], private_hosts=LOCAL, deadline_seconds=0.5) as client:
        yield client


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[FakeUpstream]:
    async with WarmUpstream(tmp_path, seed=7) as running:
        yield running


@pytest.fixture
async def freezable(tmp_path: Path) -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream(tmp_path, seed=7) as running:
        yield running
