"""One key with 100,000 viewers, and 2,000 more a second subscribe to it by SQL, while a worker's due check and store write the same key's row every second.

Lock waits are the server's own: every wait for a lock above 2 ms is in its log with its length (deadlock_timeout and log_lock_waits of this database), so none is missed between two looks. The slowest call
of a subscriber is told beside it; it has everything else in it too, queueing for a processor above all.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import uuid
from collections.abc import Sequence

import psycopg
from psycopg import sql

from bench.children import Child
from bench.line import Check, Contender, Line
from bench.measure import Figures
from bench.refresh.crowd import TYPES
from bench.refresh.due import crowded
from bench.refresh.lab import SYSTEM, Lab, declare, symbols
from bench.server import Database

_PER_SECOND = 2000
_PROCESSES = 2
_LOGGED_MS = 2
_WAITED = re.compile(
    rb"(?:acquired|still waiting for|avoided deadlock for|detected deadlock while waiting for) .* after ([0-9.]+) ms"
)
_TYPE = TYPES[0]
_SESSIONS = "INSERT INTO livewell.viewer_session (id, seen_at, created_at, user_id) SELECT id, livewell.now(), livewell.now(), 'session:' || id FROM unnest(%s::uuid[]) AS id"


def _measure(lab: Lab) -> Figures:
    key = symbols(1)[0]
    sessions = [str(uuid.uuid4()) for _ in range(_PER_SECOND * lab.sizes.hot_seconds)]
    with contextlib.ExitStack() as stack:
        simulator = stack.enter_context(lab.simulator(symbols=1000, tick_seconds=1))
        database = stack.enter_context(lab.server.database(crowded(lab, old=True)))
        declare(database.dsn, simulator.url, types=())
        _prepare(database, key, sessions)
        told_before = lab.server.log.stat().st_size
        worker = stack.enter_context(Child(SYSTEM, "work", database.dsn, {}))
        worker.wait_ready()
        worker.tell("go")
        clients = [
            stack.enter_context(
                Child(
                    SYSTEM,
                    "subscribe",
                    database.dsn,
                    {"sessions": part, "per_second": _PER_SECOND / _PROCESSES, "type": _TYPE, "key": key},
                )
            )
            for part in (sessions[n::_PROCESSES] for n in range(_PROCESSES))
        ]
        for client in clients:
            client.wait_ready()
        for client in clients:
            client.tell("go")
        answers = [client.answer() for client in clients]
        worker.tell("stop")
        worker.answer()
        with lab.server.log.open("rb") as log:
            log.seek(told_before)
            waits = [float(found) for found in _WAITED.findall(log.read())]
        stored, watched = _counted(database, key)
    took = sorted(1000 * seconds for answer in answers for seconds in answer["took"])
    cuts = statistics.quantiles(took, n=100, method="inclusive")
    return {
        "lock_wait_ms": max(waits, default=0.0),
        "lock_waits": len(waits),
        "subscribes_per_second": len(took) / max(answer["seconds"] for answer in answers),
        "call_p50_ms": cuts[49],
        "call_p99_ms": cuts[98],
        "slowest_call_ms": took[-1],
        "stores": stored,
        "subscriptions": watched,
    }


def _prepare(database: Database, key: str, sessions: Sequence[str]) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
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
        row = connection.execute(
            "SELECT (SELECT coalesce(sum(n), 0) FROM livewell.refresh_count WHERE outcome IN ('stored', 'unchanged', 'corrected'))::integer,"
            " (SELECT count(*) FROM livewell.subscription WHERE data_type = %s AND key = %s)::integer",
            (_TYPE, key),
        ).fetchone()
    assert row is not None
    return row[0], row[1]


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
