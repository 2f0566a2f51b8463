"""A server for each test on a database of its own, which is cleaned and handed on (tests/support/recycled.py)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from livewell.db import scratch
from livewell.settings import Settings
from tests.support.http import Web, in_process, listening, logins
from tests.support.recycled import Recycler
from tests.support.web_types import STORED, apply_types


@pytest.fixture(scope="session")
def market_recycler(livewell_server: str, livewell_template: str) -> Iterator[Recycler]:
    """Databases that have the types of the market already.

    To apply them takes longer than most tests here.
    """
    name = f"livewell_test_market_{secrets.token_hex(6)}"
    dsn = scratch.clone(livewell_server, livewell_template, name)
    asyncio.run(apply_types(dsn, Settings(database_url=SecretStr(dsn))))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("TRUNCATE livewell.audit")  # tests look at what they did themselves
    made = Recycler(livewell_server, name)
    yield made
    made.close()
    scratch.drop(livewell_server, name)


@pytest.fixture
def livewell_dsn(request: pytest.FixtureRequest, recycler: Recycler) -> Iterator[str]:
    """With the types of the market, where the test asks for them."""
    chosen = request.getfixturevalue("market_recycler") if "market" in request.fixturenames else recycler
    yield chosen.take()
    chosen.give_back()


@pytest.fixture(scope="session")
def server_logins(livewell_server: str, livewell_template: str) -> Iterator[dict[str, tuple[str, str]]]:
    """Logins of the server's roles, for the whole run of this process."""
    assert livewell_template  # the roles come with it
    with logins(livewell_server) as made:
        yield made


@pytest.fixture
def server_settings(livewell_settings: Settings, tmp_path: Path) -> Settings:
    """Nothing is remembered of keys, nobody asks too often, and files are the test's own."""
    quick = {
        "key_cache_seconds": 0,
        "session_requests_per_second": 10_000,
        "read_requests_per_second": 10_000,
        "requests_per_second": 10_000,
        "export_store": str(tmp_path / "exports"),
    }
    return livewell_settings.model_copy(update=quick)


@pytest.fixture
async def web(
    livewell_dsn: str, server_logins: dict[str, tuple[str, str]], server_settings: Settings
) -> AsyncIterator[Web]:
    """A server in this process."""
    async with in_process(livewell_dsn, server_logins, server_settings) as opened:
        yield opened


@pytest.fixture
async def wire(
    livewell_dsn: str, server_logins: dict[str, tuple[str, str]], server_settings: Settings
) -> AsyncIterator[Web]:
    """A server that listens on a socket."""
    async with listening(livewell_dsn, server_logins, server_settings) as opened:
        yield opened


@pytest.fixture
def market(web: Web) -> Web:
    """The server with types in its registry, and one fresh quote."""
    web.rows(STORED)
    return web
