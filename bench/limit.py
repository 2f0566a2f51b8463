"""The limit: the worker's SQL in a bare loop without handlers.

The SQL is the same (claim, finish, fence, history), on one connection, one call at a time.
"""

from __future__ import annotations

import time

import psycopg

from bench.children import ask
from bench.measure import installed
from bench.server import Server
from bench.system import LIVEWELL

_BATCH = 500


def limit(server: Server, jobs: int) -> dict[str, float]:
    """Fill as always, then exchange batches until nothing is left."""
    with server.database(installed(server, LIVEWELL)) as database:
        ask(LIVEWELL, "fill", database.dsn, jobs=jobs)
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            return {"jobs_per_second": jobs / _seconds(connection)}


def _seconds(connection: psycopg.Connection[tuple[int, ...]]) -> float:
    row = connection.execute("SELECT livewell.register_worker('bare', '0', '{bench}', '{noop}', 1, 60)").fetchone()
    assert row is not None
    ids: list[int] = []
    fences: list[int] = []
    started = time.perf_counter()
    while True:
        rows = connection.execute(
            "SELECT id, fence, payload FROM livewell.exchange_jobs(%s, %s::bigint[], %s::bigint[], NULL, "
            "'{bench}', %s, false)",
            (row[0], ids, fences, _BATCH),
        ).fetchall()
        ids, fences = [claimed[0] for claimed in rows], [claimed[1] for claimed in rows]
        if not rows:
            return time.perf_counter() - started
