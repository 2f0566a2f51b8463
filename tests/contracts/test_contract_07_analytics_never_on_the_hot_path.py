"""Contract 7: analytics never on the hot path.

Looking at what is watched already writes the viewer's own rows and nothing else: no counter, no
"last viewed", no row of the key.

Broken once, and kept broken below: a timestamp written for each view.
"""

from __future__ import annotations

from tests.support.refresh_sql import RefreshSession
from tests.support.variants import Change, variant

OWN = {"viewer_session", "viewer", "subscription"}
STAMPED: Change = (
    "    <<together>>",
    "    UPDATE livewell.ledger l SET wanted_at = v_now FROM unnest(v_types, v_keys) AS g (type, key) WHERE l.data_type = g.type AND l.key = g.key;\n    <<together>>",
)


def written(refresh: RefreshSession) -> set[str]:
    """Tables that twenty views, heartbeats and counts of a watched key wrote to."""
    refresh.freeze()
    now = refresh.now()
    refresh.keep("AAPL", fetched_at=now, checked_at=now, source_at=now)
    refresh.subscribe(refresh.open("first"), "AAPL", user="first")
    tables = refresh.column(
        "SELECT relname FROM pg_class WHERE relnamespace = 'livewell'::regnamespace AND relkind = 'r' ORDER BY 1"
    )
    rows = {table: f"SELECT array_agg((ctid, xmin)::text ORDER BY ctid) FROM livewell.{table}" for table in tables}
    before = {table: refresh.value(query) for table, query in rows.items()}
    for n in range(20):
        user = f"user {n}"
        session = refresh.open(user)
        refresh.subscribe(session, "AAPL", user=user)
        refresh.viewers()
        refresh.advance(2)
        refresh.heartbeat(session, user)
        if n % 2:
            refresh.unsubscribe(session, "AAPL", user=user)
    return {table for table, query in rows.items() if refresh.value(query) != before[table]}


def test_a_view_writes_only_the_viewers_own_rows(refresh: RefreshSession) -> None:
    """Neither the key's row nor any counter is touched."""
    assert written(refresh) == OWN


def test_a_timestamp_for_each_view_is_noticed(refresh: RefreshSession, queue_dsn: str) -> None:
    """Broken on purpose."""
    with variant(queue_dsn, "subscribe", STAMPED):
        assert written(refresh) == OWN | {"ledger"}
