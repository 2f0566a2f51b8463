"""The second that a look of the dashboard may take holds behind a transaction pooler too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from livewell.db import Database
from livewell.errors import DatabaseUnavailable
from livewell.server.looks import Looks
from livewell.settings import Settings
from livewell.testing.pooler import PgBouncer, find_pgbouncer

pytestmark = pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
SLEEP = "SELECT pg_sleep(3600)"


@pytest.fixture
def pooler(livewell_dsn: str) -> Iterator[PgBouncer]:
    """With one server connection: everybody has the same."""
    with PgBouncer(livewell_dsn, pool_size=1) as opened:
        yield opened


@pytest.fixture
async def looked(pooler: PgBouncer, livewell_settings: Settings) -> AsyncIterator[Database]:
    """As a dashboard has it."""
    looks = Looks(pooler.dsn, livewell_settings)
    await looks.open()
    yield looks.database
    await looks.close()


async def test_the_server_ends_a_slow_look(looked: Database) -> None:
    """Our own deadline, a second later, would leave it running on the only connection of the pool.

    Seen failing: no answer within our own deadline of 2 s.
    """
    assert looked.address.pooled
    for call in (looked.call, looked.call_dicts):
        with pytest.raises(DatabaseUnavailable, match="statement timeout") as raised:
            await call(SLEEP)
        assert raised.value.sqlstate == "57014"
        assert await looked.call("SELECT 1") == [(1,)]
    with pytest.raises(DatabaseUnavailable, match="statement timeout"):
        async with looked.transaction() as transaction:
            await transaction.fetch(SLEEP)
    assert await looked.call_dicts("SELECT 1 AS n") == [{"n": 1}]


async def test_the_next_client_of_the_connection_has_its_own_timeout(looked: Database, pooler: PgBouncer) -> None:
    """What is said for a look ends with it."""
    [(there,)] = await looked.call("SHOW statement_timeout")
    assert there == "1s"
    with psycopg.connect(pooler.dsn, autocommit=True, prepare_threshold=None) as next_client:
        found = next_client.execute("SHOW statement_timeout").fetchone()
    assert found != ("1s",)


async def test_what_a_look_keeps_is_committed(looked: Database, livewell_dsn: str) -> None:
    """Samples are written by whoever looks."""
    await looked.call("SELECT livewell.keep_sample('test', now(), '{}')")
    with psycopg.connect(livewell_dsn) as other:
        assert other.execute("SELECT count(*) FROM livewell.state_sample WHERE name = 'test'").fetchone() == (1,)
