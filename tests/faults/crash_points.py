"""Where a process can be stopped for a while, so that it dies exactly there. The product knows nothing of it.

    arm(point) ──▶ whoever comes there waits ──▶ reached ──▶ the victim is killed ──▶ let_go

A point is a trigger that waits for an advisory lock, which the scenario holds while the point is
armed. So the one who waits is in the middle of its transaction, before the change. What becomes of
that statement is chosen, too:

    lost      its backend ends: as if the statement had never arrived
    written   it goes on: a statement alone commits, though nobody hears the answer; a transaction
              whose client is gone is rolled back at its next statement
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psycopg

LOCK = 7_017
REACH_SECONDS_MAX = 30.0

# name → table, event, condition
POINTS: Mapping[str, tuple[str, str, str]] = {
    "request": ("export", "INSERT", "true"),
    "begin": ("export", "UPDATE", "NEW.state = 'running' AND NEW.progress = 0"),
    "read": ("export", "UPDATE", "NEW.state = 'running' AND NEW.progress = 25"),
    "rendered": ("export", "UPDATE", "NEW.state = 'running' AND NEW.progress = 50"),
    "file-row": ("export_file", "INSERT", "true"),
    "stored": ("export", "UPDATE", "NEW.state = 'running' AND NEW.progress = 90"),
    "finish": ("export", "UPDATE", "NEW.state = 'finished' AND OLD.state <> 'finished'"),
    "job": ("job", "DELETE", "OLD.kind = 'export.render'"),
    "cancel": ("export", "UPDATE", "NEW.state = 'cancelled'"),
    "delete": ("export", "UPDATE", "NEW.state = 'deleted'"),
    "forget": ("export_file", "DELETE", "true"),
}
# The job's row is deleted behind the change of the export, in the same transaction.
_FUNCTION = """
CREATE FUNCTION livewell_fault_hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock_shared(%d, pg_catalog.hashtext(TG_ARGV[0]));
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$
"""
_TRIGGER = "CREATE TRIGGER fault_{name} BEFORE {event} ON livewell.{table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION livewell_fault_hold('{point}')"
_WAITING = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = hashtext(%s)::oid AND NOT granted"


def install(connection: psycopg.Connection[Any]) -> None:
    """Triggers for all points; while nothing is armed nobody waits."""
    connection.execute((_FUNCTION % LOCK).encode())
    for point, (table, event, when) in POINTS.items():
        named = _TRIGGER.format(name=point.replace("-", "_"), event=event, table=table, when=when, point=point)
        connection.execute(named.encode())


class CrashPoint:
    """One point, armed as long as the connection of the scenario lives."""

    def __init__(self, dsn: str, point: str) -> None:
        self._dsn = dsn
        self._point = point
        self._connection: psycopg.Connection[Any] | None = None
        self._pids: list[int] = []

    def arm(self) -> None:
        """From now on whoever comes here waits."""
        self._connection = psycopg.connect(self._dsn, autocommit=True)
        self._connection.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", (LOCK, self._point))

    async def reached(self) -> bool:
        """Wait until somebody is here; false if nobody came."""
        end = time.monotonic() + REACH_SECONDS_MAX
        while time.monotonic() < end:
            assert self._connection is not None
            rows = self._connection.execute(_WAITING.encode(), (LOCK, self._point)).fetchall()
            if rows:
                self._pids = [pid for (pid,) in rows]
                return True
            await asyncio.sleep(0.01)
        return False

    def let_go(self, *, written: bool) -> None:
        """What waited goes on, or is lost."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(psycopg.OperationalError), connection:  # Postgres may be the victim
            if not written:
                for pid in self._pids:
                    connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        connection.close()
