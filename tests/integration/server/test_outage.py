"""A server without its database says so, and shows nothing as fresh for longer than it is (R22)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell.settings import Settings
from livewell.testing.processes import eventually_async
from livewell.testing.proxy import ThreadedProxy
from tests.integration.server.test_streams import Logins, Viewer, put, served
from tests.support.http import Web
from tests.support.store_sql import StoreSession


@pytest.fixture
def proxy(livewell_dsn: str) -> Iterator[ThreadedProxy]:
    """Between the server and the database.

    In a thread of its own, so that a busy loop here does not slow it.
    """
    parts = conninfo_to_dict(livewell_dsn)
    with ThreadedProxy(str(parts["host"]), int(str(parts["port"]))) as running:
        yield running


@pytest.fixture
def store(livewell_dsn: str) -> Iterator[StoreSession]:
    with StoreSession(livewell_dsn) as session:
        session.reset()
        session.rows("GRANT SELECT ON ALL TABLES IN SCHEMA livewell_data TO livewell_hub")
        session.rows("UPDATE livewell.data_type SET ttl = interval '4 seconds' WHERE name = 'quote' RETURNING 1")
        yield session


@asynccontextmanager
async def behind(proxy: ThreadedProxy, dsn: str, made: Logins, settings: Settings) -> AsyncIterator[Web]:
    through = make_conninfo("", **{**conninfo_to_dict(dsn), "host": "127.0.0.1", "port": str(proxy.port)})
    async with served(through, made, settings) as web:
        yield web


async def until_ready(web: Web, status: int) -> float:
    """Seconds until /readyz says this."""
    began = time.monotonic()

    async def says() -> bool:
        return (await web.client.get("/readyz")).status_code == status

    await eventually_async(says, timeout=20)
    return time.monotonic() - began


@pytest.mark.parametrize("faults", [("freeze",), ("refuse", "reset")], ids=["half_open", "killed"])
async def test_a_stream_hears_that_the_database_is_away_and_that_its_values_are_stale(
    *,
    faults: Sequence[str],
    proxy: ThreadedProxy,
    store: StoreSession,
    livewell_dsn: str,
    server_logins: Logins,
    server_settings: Settings,
) -> None:
    """R22, X1: away, then stale when the time to live is over, then back and what is true.

    /readyz says so meanwhile. half-open: nothing is refused and nothing answered.

    Seen failing with the hub's own turning of verdicts taken out: after "away" no reading came; and
    with _say_presence silent: "away" never came.
    """
    async with behind(proxy, livewell_dsn, server_logins, server_settings) as web:
        put(store, "AAPL", 1)
        viewer = await Viewer.come(web)
        await viewer.subscribe("AAPL")
        async with await viewer.stream() as stream:
            _, first = await stream.next("reading")
            for fault in faults:
                getattr(proxy, fault)()
            seconds = await until_ready(web, 503)
            _, away = await stream.next("away")
            _, turned = await stream.next("reading")
            proxy.heal()
            _, back = await stream.next("back")
            put(store, "AAPL", 2)
            _, last = await stream.next("reading")
            await until_ready(web, 200)

    assert seconds < 3  # a second, on a machine that has nothing else to do
    assert (first["verdict"], turned["verdict"], last["verdict"]) == ("fresh", "stale", "fresh")
    assert 0 < first["fresh_for_seconds"] <= 4
    assert (turned["stale_at"], turned["fresh_for_seconds"], "value" in turned) == (None, None, False)
    assert turned["age_seconds"] >= 4
    assert (away["seconds"] > 0, back) == (True, {})
    assert last["value"] == {"price": 2}
