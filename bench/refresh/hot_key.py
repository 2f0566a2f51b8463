"""One key with 100,000 viewers, and 2,000 more a second subscribe to it by SQL.

Meanwhile a worker's due check and store write the same key's row every second.

The subscribers are sixteen connections, each in a procedure that calls livewell.subscribe for one
session after the other, commits each, and waits for its next moment: no client takes a processor
from the server.

Lock waits are the server's own: every wait for a lock above 2 ms is in its log with its length
(deadlock_timeout and log_lock_waits of this database), so none is missed between two looks. The
slowest call of a subscriber is told beside it; it has everything else in it too, queueing for a
processor above all.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql

from bench.children import Child, ChildFailed
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.refresh.crowd import TYPES
from bench.refresh.due import crowded
from bench.refresh.lab import SYSTEM, Lab, declare, symbols
from bench.server import Database

_PER_SECOND = 2000
_CONNECTIONS = 16
_START_SECONDS = 0.5
_LOGGED_MS = 2
_WAITED = re.compile(
    rb"(?:acquired|still waiting for|avoided deadlock for|detected deadlock while waiting for) .* after ([0-9.]+) ms"
)
_TYPE = TYPES[0]
_SESSIONS = (
    "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) SELECT h, livewell.now(), "
    "livewell.now(), 'session:' || h FROM unnest(%s::uuid[]) AS id, livewell.session_hash(id) AS h"
)
_SUBSCRIBER = """
CREATE TABLE public.bench_took (ms float8 NOT NULL, ended_at timestamptz NOT NULL);
CREATE PROCEDURE public.bench_subscribe(p_sessions uuid[], p_type text, p_key text, p_first timestamptz, p_gap interval) LANGUAGE plpgsql AS $f$
DECLARE
    v_session   uuid;
    v_answer    text;
    v_began     timestamptz;
    v_n         integer := 0;
    v_took      float8[] := '{}';
BEGIN
    FOREACH v_session IN ARRAY p_sessions LOOP
        PERFORM pg_sleep(extract(epoch FROM p_first + v_n * p_gap - clock_timestamp()));
        COMMIT;
        v_began := clock_timestamp();
        SELECT s.answer INTO v_answer FROM livewell.subscribe(v_session, NULL, ARRAY[p_type], ARRAY[p_key]) AS s;
        COMMIT;
        v_took := v_took || (1000 * extract(epoch FROM clock_timestamp() - v_began))::float8;
        v_n := v_n + 1;
        ASSERT v_answer = 'subscribed', v_answer;
    END LOOP;
    INSERT INTO public.bench_took SELECT t, clock_timestamp() FROM unnest(v_took) AS t;
END
$f$;
"""


def _measure(lab: Lab) -> Figures:
    key = symbols(1)[0]
    sessions = [str(uuid.uuid4()) for _ in range(_PER_SECOND * lab.sizes.hot_seconds)]
    with contextlib.ExitStack() as stack:
        simulator = stack.enter_context(lab.simulator(symbols=1000, tick_seconds=1))
        database = stack.enter_context(lab.server.database(crowded(lab, old=True)))
        declare(database.dsn, simulator.url, types=())
        _prepare(database, key, sessions)
        _prove(lab, database)
        told_before = lab.server.log.stat().st_size
        worker = stack.enter_context(Child(SYSTEM, "work", database.dsn, {}))
        worker.wait_ready()
        worker.tell("go")
        took, seconds = _subscribe(database, key, sessions)
        worker.tell("stop")
        worker.answer()
        waits = _waits(lab, told_before)
        stored, watched = _counted(database, key)
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return {
        "lock_wait_ms": max(waits, default=0.0),
        "lock_waits": len(waits),
        "subscribes_per_second": len(took) / seconds,
        "call_p50_ms": cuts[49],
        "call_p99_ms": cuts[98],
        "slowest_call_ms": max(took),
        "stores": stored,
        "subscriptions": watched,
    }


def _prove(lab: Lab, database: Database) -> None:
    """A wait that we cause is in the log; if it is not, none would be."""
    told_before = lab.server.log.stat().st_size
    lock = "LOCK TABLE public.bench_took"
    with (
        psycopg.connect(database.dsn) as first,
        psycopg.connect(database.dsn) as second,
        ThreadPoolExecutor(1) as thread,
    ):
        first.execute(lock)
        waiting = thread.submit(second.execute, lock)
        first.execute("SELECT pg_sleep(%s)", (_LOGGED_MS / 20,))
        first.commit()
        waiting.result()
    if not _waits(lab, told_before):
        raise ChildFailed("bench: a wait for a lock was not told in the server's log")


def _waits(lab: Lab, told_before: int) -> list[float]:
    """Milliseconds of each wait for a lock since the log had this length."""
    with lab.server.log.open("rb") as log:
        log.seek(told_before)
        return [float(found) for found in _WAITED.findall(log.read())]


def _subscribe(database: Database, key: str, sessions: Sequence[str]) -> tuple[list[float], float]:
    """All at their moments.

    Milliseconds of each call, and seconds from the first moment to the last end.
    """
    with psycopg.connect(database.dsn) as connection:
        first = _row(connection, "SELECT clock_timestamp()")[0] + timedelta(seconds=_START_SECONDS)
    gap = timedelta(seconds=_CONNECTIONS / _PER_SECOND)

    def run(number: int) -> None:
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute(
                "CALL public.bench_subscribe(%s::uuid[], %s, %s, %s, %s)",
                (list(sessions[number::_CONNECTIONS]), _TYPE, key, first + number * gap / _CONNECTIONS, gap),
            )

    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        list(threads.map(run, range(_CONNECTIONS)))
    with psycopg.connect(database.dsn) as connection:
        took, last = _row(connection, "SELECT array_agg(ms), max(ended_at) FROM public.bench_took")
    return took, (last - first).total_seconds()


def _row(connection: psycopg.Connection[Any], query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
    row = connection.execute(query.encode(), values).fetchone()
    assert row is not None
    return tuple(row)


def _prepare(database: Database, key: str, sessions: Sequence[str]) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(_SUBSCRIBER)
        connection.execute(_SESSIONS, (list(sessions),))
        connection.execute("SELECT livewell.set_ttl(%s, %s, interval '1 second')", (_TYPE, key))
        connection.execute("VACUUM (ANALYZE) livewell.viewer_session")
        for name, value in (("log_lock_waits", "on"), ("deadlock_timeout", f"{_LOGGED_MS}ms")):
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(database.name), sql.Identifier(name), value
                )
            )


def _counted(database: Database, key: str) -> tuple[int, int]:
    with psycopg.connect(database.dsn) as connection:
        stored, watched = _row(
            connection,
            "SELECT (SELECT coalesce(sum(n), 0) FROM livewell.refresh_count WHERE outcome IN ('stored', "
            "'unchanged', 'corrected'))::integer,"
            " (SELECT count(*) FROM livewell.subscription WHERE data_type = %s AND key = %s)::integer",
            (_TYPE, key),
        )
    return stored, watched


def _contenders(lab: Lab) -> Sequence[Contender]:
    return [Contender("livewell", lambda: _measure(lab))]


LINES = (
    Line(
        "hot-key",
        "2,000 subscribes a second to a key with 100,000 viewers",
        (
            Check("hot-key/lock-wait", "lock_wait_ms", 50.0, at_most=True, never=True),
            Check("hot-key/pace", "subscribes_per_second", 1950.0),
        ),
        _contenders,
    ),
)
