"""The limit: the same SQL as the worker's (claim, finish, fence, history), in a bare loop without handlers. Prints one JSON line."""

import json
import sys
import time

import psycopg

from bench.payload import PAYLOAD
from livewell.db.migrate import migrate

_BATCH = 500


def main(dsn: str, jobs: int) -> None:
    """Enqueue in one statement, then exchange batches until nothing is left."""
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT livewell.ensure_history_days(2)")
        connection.execute("SELECT livewell.declare_queue('bench', 5, 5, 300)")
        connection.execute(
            "SELECT * FROM livewell.enqueue_jobs((SELECT jsonb_agg(jsonb_build_object('id', n, 'queue', 'bench', 'kind', 'noop', 'payload', %s::jsonb))"
            " FROM generate_series(1, %s) AS n))",
            (json.dumps(PAYLOAD), jobs),
        )
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT livewell.register_worker('bare', '0', '{bench}', '{noop}', 1, 60)").fetchone()
        worker = row[0] if row else 0
        ids: list[int] = []
        fences: list[int] = []
        done = 0
        started = time.perf_counter()
        while True:
            rows = connection.execute(
                "SELECT id, fence, payload FROM livewell.exchange_jobs(%s, %s::bigint[], %s::bigint[], NULL, '{bench}', %s, false)",
                (worker, ids, fences, _BATCH),
            ).fetchall()
            done += len(ids)
            ids, fences = [row[0] for row in rows], [row[1] for row in rows]
            if not rows:
                break
        print(json.dumps({"jobs": done, "jobs_per_second": done / (time.perf_counter() - started)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
