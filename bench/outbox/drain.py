"""Relay a backlog with one process and a sink that takes everything; and what a life writes.

From the first batch at the sink to the last event that the database knows as delivered.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from bench.line import Check, Contender, Line
from bench.measure import Figures, drain
from bench.outbox.lab import BODY, TOPIC, Lab, feed, work_off
from bench.outbox.peer import NAME

# One event in each transaction, as business transactions have them.
_LIVES = """
CREATE PROCEDURE public.bench_emit(p_topic text, p_body json, p_keys integer, p_events integer) LANGUAGE plpgsql AS $f$
BEGIN
    FOR n IN 1 .. p_events LOOP
        PERFORM livewell.emit_event(p_topic, p_body, (n % p_keys)::text, 'acme');
        COMMIT;
    END LOOP;
END
$f$;
"""


def _drain(lab: Lab) -> Figures:
    events = lab.sizes.drained
    with lab.database() as database, psycopg.connect(database.dsn, autocommit=True) as connection:
        feed(connection, events, keys=lab.sizes.keys)
        before = database.read()
        answer = work_off(database, events)
        after = database.read()
    return {
        "events_per_second": events / (answer["last"] - answer["first"]),
        "calls_per_event": (after.calls - before.calls) / events,
        "batch_ms": 1000 * answer["batch_seconds"],
    }


def _peer(lab: Lab) -> Figures:
    figures = drain(lab.server, lab.peers[NAME], jobs=lab.sizes.drained)
    return {"events_per_second": figures["jobs_per_second"], "calls_per_event": figures["calls_per_job"]}


def _drains(lab: Lab) -> Sequence[Contender]:
    ours = [Contender("livewell", lambda: _drain(lab))]
    return [*ours, Contender(NAME, lambda: _peer(lab))] if NAME in lab.peers else ours


def _wal(lab: Lab) -> Figures:
    events = lab.sizes.lives
    with lab.database() as database, psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(_LIVES)
        start = database.read()
        connection.execute("CALL public.bench_emit(%s, %s::json, %s, %s)", (TOPIC, BODY, lab.sizes.keys, events))
        emitted = database.read()
        work_off(database, events)
        delivered = database.read()
        connection.execute("VACUUM livewell.event_delivery")
        vacuumed = database.read()
    return {
        "wal_bytes_per_life": (vacuumed.wal_bytes - start.wal_bytes) / events,
        "wal_bytes_emit": (emitted.wal_bytes - start.wal_bytes) / events,
        "wal_bytes_relay": (delivered.wal_bytes - emitted.wal_bytes) / events,
        "wal_bytes_vacuum": (vacuumed.wal_bytes - delivered.wal_bytes) / events,
        "calls_per_event": (delivered.calls - emitted.calls) / events,
    }


LINES: tuple[Line[Lab], ...] = (
    Line(
        "drain",
        "relay a backlog to a sink that takes everything, one process",
        (
            Check("drain", "events_per_second", 20_000.0),
            Check(f"drain/{NAME}", "events_per_second", 3.0, against=NAME),
        ),
        _drains,
    ),
    Line(
        "wal",
        "WAL of an event's life",
        (Check("wal", "wal_bytes_per_life", 900.0, at_most=True),),
        lambda lab: [Contender("livewell", lambda: _wal(lab))],
    ),
)
