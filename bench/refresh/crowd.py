"""Who watches what, filled by SQL.

Sessions are seen in the future, so that none is a ghost before its database is measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from bench.refresh.lab import UPSTREAM

TYPES = ("quote_0", "quote_1", "quote_2", "quote_3", "quote_4")
DUE_SHARE = 100  # one in so many

# Key number i is of type i mod 5; number 0 is the popular one.
_KEYS = """
CREATE TABLE public.bench_key AS
SELECT i, 'quote_' || i %% 5 AS data_type, (%(symbols)s::text[])[1 + i / 5] AS key FROM generate_series(0, %(keys)s - 1) AS i
"""
_SESSIONS = """
INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id)
SELECT md5('s' || n)::uuid, livewell.now() + interval '6 hours', livewell.now(), 'u' || n FROM generate_series(0, %(sessions)s - 1) AS n
"""
_VIEWERS = (
    "INSERT INTO livewell.viewer (user_id, subscriptions) SELECT 'u' || n, 3 FROM generate_series(0, "
    "%(sessions)s - 1) AS n"
)
_SUBSCRIPTIONS = """
INSERT INTO livewell.subscription (session_id, data_type, key, user_id)
SELECT md5('s' || n)::uuid, k.data_type, k.key, 'u' || n
FROM generate_series(0, %(sessions)s - 1) AS n CROSS JOIN generate_series(0, 2) AS place
JOIN public.bench_key k ON k.i = CASE place WHEN 0 THEN 0 ELSE 1 + (n::bigint * 2 + place) * 7919 %% (%(keys)s - 1) END
ON CONFLICT DO NOTHING
"""
# Checked within the last ten hours, of a day to live: nothing becomes due while we measure, but
# what we make due.
_LEDGER = """
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, fetched_at, checked_at, changed_at, source_at, status_at, due_at, wanted_at)
SELECT k.data_type, k.key, %(upstream)s, 1, 1, k.at, k.at, k.at, k.at, k.at, k.at + interval '1 day', k.at
FROM (SELECT k.*, livewell.now() - random() * interval '10 hours' AS at FROM public.bench_key k) k
"""
_MORE_LEDGER = """
INSERT INTO livewell.ledger (data_type, key, upstream, version, status_version, fetched_at, checked_at, changed_at, source_at, status_at, due_at, wanted_at)
SELECT 'quote_' || n %% 5, 'X' || n, %(upstream)s, 1, 1, m.at, m.at, m.at, m.at, m.at, m.at + interval '1 day', m.at
FROM generate_series(1, %(more)s) AS n CROSS JOIN LATERAL (SELECT livewell.now() - random() * interval '10 hours' + n * interval '0' AS at) m
"""
_DUE_SET = (
    "CREATE TABLE public.bench_due AS SELECT k.* FROM public.bench_key k JOIN (SELECT DISTINCT n::bigint * 97 %% "
    "%(keys)s AS i FROM generate_series(0, %(due)s - 1) AS n) d USING (i)"
)
_MAKE_STALE = (
    "UPDATE livewell.ledger l SET checked_at = livewell.now() - interval '2 days' FROM public.bench_due d WHERE "
    "l.data_type = d.data_type AND l.key = d.key"
)
_MAKE_DUE = (
    "UPDATE livewell.ledger l SET due_at = livewell.now() - interval '10 seconds' FROM public.bench_due d WHERE "
    "l.data_type = d.data_type AND l.key = d.key"
)
_MAKE_ALL_DUE = (
    "UPDATE livewell.ledger SET checked_at = livewell.now() - interval '2 days', due_at = livewell.now() - "
    "random() * interval '10 minutes'"
)
_MAKE_DUE_AGAIN = """
WITH gone AS (DELETE FROM livewell.job RETURNING payload ->> 'type' AS data_type, payload ->> 'key' AS key)
UPDATE livewell.ledger l SET due_at = livewell.now() - random() * interval '10 minutes' FROM gone g WHERE l.data_type = g.data_type AND l.key = g.key
"""
_TABLES = ("livewell.viewer_session", "livewell.viewer", "livewell.subscription", "livewell.ledger", "livewell.job")


def fill(dsn: str, symbols: Sequence[str], *, sessions: int, keys: int, ledger_times: int = 1) -> None:
    """Sessions that look at three keys each, the first of them the popular one.

    One key in a hundred is stale.
    """
    values = {
        "symbols": list(symbols),
        "sessions": sessions,
        "keys": keys,
        "due": max(1, keys // DUE_SHARE),
        "more": keys * (ledger_times - 1),
        "upstream": UPSTREAM,
    }
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (_KEYS, _SESSIONS, _VIEWERS, _SUBSCRIPTIONS, _LEDGER, _MORE_LEDGER, _DUE_SET, _MAKE_STALE):
            connection.execute(statement, values)
        for table in _TABLES:
            connection.execute(f"VACUUM (ANALYZE) {table}")


def make_due(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """Everything stale is due, and nothing is queued; answers how many.

    Vacuumed, as wherever a key is refreshed once a minute: checks without a pause would leave dead
    rows that nobody has.
    """
    connection.execute("DELETE FROM livewell.job")
    due = connection.execute(_MAKE_DUE).rowcount
    connection.execute("VACUUM (INDEX_CLEANUP ON) livewell.ledger, livewell.job")
    return due


def make_all_due(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """All keys are due, for up to ten minutes; answers how many."""
    due = connection.execute(_MAKE_ALL_DUE).rowcount
    connection.execute("VACUUM (ANALYZE, INDEX_CLEANUP ON) livewell.ledger")
    return due


def make_due_again(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """What the last check queued is due as before."""
    connection.execute(_MAKE_DUE_AGAIN)


def watch_all(dsn: str, symbols: Sequence[str], data_type: str) -> None:
    """Each key has one to three viewers, nothing was ever fetched, all of it is due now."""
    values = {"symbols": list(symbols), "type": data_type, "upstream": UPSTREAM}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (
            (
                "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) SELECT md5('s' || n)::uuid, "
                "livewell.now() + interval '6 hours', livewell.now(), 'u' || n FROM generate_series(0, 999) AS n"
            ),
            (
                "INSERT INTO livewell.subscription (session_id, data_type, key, user_id)"
                " SELECT md5('s' || (i + place * 333) %% 1000)::uuid, %(type)s, key, 'u' || (i + place * 333) %% 1000"
                " FROM unnest(%(symbols)s::text[]) WITH ORDINALITY AS s (key, i) CROSS JOIN LATERAL "
                "generate_series(0, i %% 3) AS place"
            ),
            (
                "INSERT INTO livewell.ledger (data_type, key, upstream, status_at, due_at, wanted_at)"
                " SELECT %(type)s, key, %(upstream)s, livewell.now(), livewell.now(), livewell.now() FROM "
                "unnest(%(symbols)s::text[]) AS key"
            ),
        ):
            connection.execute(statement, values)
        for table in _TABLES:
            connection.execute(f"VACUUM (ANALYZE) {table}")
