"""Contract 10: claims, registrations and verdicts refuse to run on a replica, on a real one (R28).

Broken once, and kept broken below: without its own look at pg_is_in_recovery() the refusal is only
Postgres's "cannot execute … in a read-only transaction", which says nothing about what to do. The
last wall stands by construction: a replica cannot write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from pydantic import SecretStr

from livewell import Livewell, Settings
from livewell.db.migrate import migrate
from livewell.errors import ReplicaRefused
from tests.support.queue_sql import QueueSession
from tests.support.servers import cluster
from tests.support.standby import can_make_standby, standby_of, wait_until_replayed
from tests.support.variants import variant

REFUSED = "LW001"

pytestmark = pytest.mark.skipif(
    not can_make_standby(), reason="NO STANDBY TESTED: the installed Postgres has no pg_basebackup"
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A primary with one worker and two jobs, and its standby."""

    primary: str
    standby: str
    worker: int


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with cluster() as primary:
        migrate(primary)
        with QueueSession(primary) as queue:
            queue.rows("SELECT livewell.ensure_history_days(2)")
            queue.declare()
            queue.enqueue(2)
            worker = queue.register()
        with standby_of(primary) as standby:
            yield Pair(primary, standby, worker)


def refusal(dsn: str, query: str, *params: object) -> tuple[str | None, str]:
    with QueueSession(dsn) as queue, pytest.raises(psycopg.Error) as caught:
        queue.rows(query, *params)
    return caught.value.sqlstate, str(caught.value)


CLAIM = "SELECT * FROM livewell.claim_jobs(%s, '{work}', 10)"
EXCHANGE = "SELECT * FROM livewell.exchange_jobs(%s, '{}', '{}', NULL, '{work}', 10, false)"
REGISTER = "SELECT livewell.register_worker('w', '1', '{work}', '{}', 1, %s)"

# Refreshes: whoever would queue, store or hold something.
REFRESHES = {
    "singleton": "SELECT * FROM livewell.acquire_singleton('refresh.due', 'w', %s, interval '1 second')",
    "due": "SELECT * FROM livewell.dispatch_due('refresh.due', %s, 'fmp')",
    "scheduled": "SELECT * FROM livewell.dispatch_scheduled('refresh.due', %s, 'quote', NULL)",
    "store": "SELECT * FROM livewell.store_refreshes(%s, '[]')",
    "verdict": "SELECT livewell.verdict(NULL::livewell.data_type, NULL::livewell.ledger, to_timestamp(%s))",
    "read_key": "SELECT * FROM livewell.read_key('quote', 'AAPL', %s)",
    "read_through": "SELECT * FROM livewell.read_through('quote', 'AAPL', %s)",
}
QUERIES = {"claim": CLAIM, "exchange": EXCHANGE, "register": REGISTER, **REFRESHES}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_replica_refuses_and_says_why(pair: Pair, query: str) -> None:
    """With our own SQLSTATE, which Python turns into ReplicaRefused."""
    state, text = refusal(pair.standby, query, pair.worker)

    assert state == REFUSED
    assert "this server is a replica" in text


def test_nothing_was_claimed_and_the_primary_serves(pair: Pair) -> None:
    """The same call on the primary gets both jobs; reading on the replica is allowed."""
    with QueueSession(pair.standby) as replica:
        assert [row[3] for row in replica.rows("SELECT * FROM livewell.list_jobs(NULL, NULL, 0, 10)")] == ["ready"] * 2
    with QueueSession(pair.primary) as queue, queue.connection.transaction(force_rollback=True):
        assert len(queue.claim(pair.worker)) == 2


async def test_a_worker_refuses_to_start_on_a_replica(pair: Pair) -> None:
    """Before it claims anything, with the setting to change."""
    app = Livewell(Settings())

    @app.task(queue="work")
    async def nothing() -> None:
        """Does nothing."""

    await app.open(settings=Settings(database_url=SecretStr(pair.standby)))
    try:
        with pytest.raises(ReplicaRefused, match="DATABASE_URL"):
            await app.worker().run()
    finally:
        await app.close()


def test_without_the_look_only_postgres_itself_refuses(pair: Pair) -> None:
    """Broken on purpose on the primary, and replicated: the answer is no longer ours."""
    look = ("IF pg_catalog.pg_is_in_recovery() THEN", "IF false THEN")
    with variant(pair.primary, "claim_jobs", look):
        wait_until_replayed(pair.primary, pair.standby)
        broken, _ = refusal(pair.standby, CLAIM, pair.worker)
    wait_until_replayed(pair.primary, pair.standby)

    assert broken == "25006"
    assert refusal(pair.standby, CLAIM, pair.worker)[0] == REFUSED
