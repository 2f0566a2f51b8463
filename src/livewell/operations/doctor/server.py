"""Examine the database itself.

Can it be reached, is it the primary, do clocks agree, can it be listened to, does the schema fit,
does anything keep it from cleaning up?
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from livewell.db import migrate
from livewell.db.listen import require_direct
from livewell.db.session import NEEDED, differing
from livewell.errors import ConfigurationError, LivewellError
from livewell.finding import Check, Finding, Patient, span

_SKEW_SECONDS_MAX = 2.0
_TRANSACTION_SECONDS_MAX = 300.0
_DEAD_ROWS_MAX = 10_000

_OLD = """
SELECT a.pid, coalesce(a.usename::text, '') AS login, coalesce(a.application_name, '') AS program, coalesce(a.state, 'unknown') AS doing, extract(epoch FROM livewell.now() - a.xact_start)::float8 AS seconds
FROM pg_catalog.pg_stat_activity a
WHERE a.datname = pg_catalog.current_database() AND a.backend_type = 'client backend' AND a.pid <> pg_catalog.pg_backend_pid() AND livewell.now() - a.xact_start > %s * interval '1 second'
ORDER BY a.xact_start LIMIT 5
"""
_PREPARED = """
SELECT p.gid, p.owner::text AS login, extract(epoch FROM livewell.now() - p.prepared)::float8 AS seconds
FROM pg_catalog.pg_prepared_xacts p WHERE p.database = pg_catalog.current_database() AND livewell.now() - p.prepared > %s * interval '1 second' ORDER BY p.prepared LIMIT 5
"""
_SETTINGS = """
SELECT lower(s.name) AS name, s.setting AS value, current_user::text AS login FROM pg_catalog.pg_settings s WHERE lower(s.name) = ANY (%s::text[])
"""
_BLOAT = """
SELECT s.schemaname::text AS schema, s.relname::text AS name, s.n_dead_tup AS dead, s.n_live_tup AS live, s.last_autovacuum FROM pg_catalog.pg_stat_user_tables s
WHERE s.schemaname IN ('livewell', 'livewell_data') AND s.n_dead_tup > %s AND s.n_dead_tup > 2 * s.n_live_tup ORDER BY s.n_dead_tup DESC LIMIT 5
"""


def unreachable(error: str) -> Finding:
    """Nothing else can be said."""
    return Finding(
        "database_unreachable",
        "database",
        error,
        "Nothing is refreshed and no job runs until the database answers; what is queued is safe.",
        "livewell db status (embedded), or look at DATABASE_URL with: livewell settings",
        level="P0",
    )


def replica() -> Finding:
    """Claims and limits must not be decided on old data (R28)."""
    return Finding(
        "not_primary",
        "database",
        "DATABASE_URL leads to a replica.",
        "Workers and servers refuse it: claims, limits and freshness are decided on the primary only. After a "
        "fail-over the address may still point at the old one.",
        "export DATABASE_URL=postgresql://PRIMARY/NAME, and start workers and servers again",
        level="P0",
    )


async def schema(conninfo: str) -> Sequence[Finding]:
    """Migrations, functions changed by hand, and roles."""
    means = {
        "missing": "What is missing cannot be used; workers and servers refuse to start, or lack rights.",
        "older": "Workers and servers of this release refuse to start.",
        "newer": "This package is older than the schema.",
        "drift": "Somebody changed it by hand; the next migration may undo that or fail on it.",
    }
    return [
        Finding(
            "role_missing"
            if problem.message.startswith("Role ")
            else "schema_drift"
            if problem.kind == "drift"
            else "schema",
            "schema",
            problem.message,
            means[problem.kind],
            problem.command.removeprefix("Run: "),
            level="P2" if problem.kind == "drift" else "P0",
        )
        for problem in await asyncio.to_thread(migrate.check, conninfo)
    ]


async def clock(patient: Patient) -> Sequence[Finding]:
    """Between this machine and the database.

    Nothing is decided by this machine's clock, but tokens and upstreams' times are.
    """
    before = time.time()
    [(told,)] = await patient.database.call("SELECT extract(epoch FROM livewell.now())::float8")
    after = time.time()
    skew = max(before - told, told - after, 0.0)
    if skew <= _SKEW_SECONDS_MAX:
        return []
    return [
        Finding(
            "clock_skew",
            "clock",
            f"This machine's clock and the database's are {span(skew)} apart.",
            "Tokens are refused too early or too late, and source times look old or lie in the future. "
            "Freshness itself is judged by the database's clock alone.",
            "timedatectl set-ntp true (on both machines)",
            level="P2",
        )
    ]


async def listening(patient: Patient) -> Sequence[Finding]:
    """LISTEN behind a transaction pooler hears nothing, silently."""
    try:
        await require_direct(patient.database.listen_conninfo, 1.0, hear_seconds=0.7)
    except ConfigurationError as error:
        seen = str(error)
    except LivewellError as error:
        seen = f"The address for listening does not answer: {error}"
    else:
        return []
    return [
        Finding(
            "listen_deaf",
            "listen_url",
            seen,
            "Nobody is woken: jobs and pushes wait for the next poll, about a second, instead of milliseconds. "
            "Nothing is lost.",
            "export LIVEWELL_LISTEN_URL=postgresql://SERVER-ITSELF:5432/NAME, and start workers and servers again",
            level="P2",
        )
    ]


async def session(patient: Patient) -> Sequence[Finding]:
    """Behind a transaction pooler a session cannot set what it needs: the login must have it."""
    rows = await patient.rows(_SETTINGS, [name.lower() for name in NEEDED])
    names = {name.lower(): name for name in NEEDED}
    login = rows[0]["login"] if rows else ""
    return [
        Finding(
            "session_setting",
            name,
            f"Sessions of login {login} have {name} = {value}; {NEEDED[name]} is needed.",
            "Through a transaction pooler Livewell cannot set it itself. With jit on, looking at the state "
            "takes seconds; under another isolation or a lock timeout claims fail; "
            "another date style cannot be read.",
            f'psql -c "ALTER ROLE \\"{login}\\" SET {name} = \'{NEEDED[name]}\'", then reconnect the pooler',
            level="P2",
        )
        for name, value in differing({names[row["name"]]: row["value"] for row in rows}).items()
    ]


async def old_transactions(patient: Patient) -> Sequence[Finding]:
    """One open transaction keeps every dead row of the hot tables."""
    means = (
        "While it is open no dead row can be removed: claims and due checks read past all of them and become "
        "slower by the minute."
    )
    found = [
        Finding(
            "old_transaction",
            f"pid {row['pid']}",
            f"A transaction of login {row['login']} ({row['program'] or 'no name'}, pid {row['pid']}, "
            f"{row['doing']}) is open for {span(row['seconds'])}.",
            means,
            f"psql -c 'SELECT pg_terminate_backend({row['pid']})'",
        )
        for row in await patient.rows(_OLD, _TRANSACTION_SECONDS_MAX)
    ]
    prepared = [
        Finding(
            "old_transaction",
            row["gid"],
            f"A prepared transaction of login {row['login']} ({row['gid']}) is open for {span(row['seconds'])}.",
            means,
            f"psql -c \"ROLLBACK PREPARED '{row['gid']}'\"",
        )
        for row in await patient.rows(_PREPARED, _TRANSACTION_SECONDS_MAX)
    ]
    return [*found, *prepared]


async def bloat(patient: Patient) -> Sequence[Finding]:
    """Dead rows that vacuum did not, or could not, remove."""
    return [
        Finding(
            "bloat",
            row["name"],
            f"Table {row['name']} has {row['dead']:,} dead rows and {row['live']:,} live ones; last autovacuum: "
            f"{row['last_autovacuum'] or 'never'}.",
            "Vacuum does not keep up, or an old transaction keeps it from removing them. Everything that reads "
            "the table reads them too.",
            f"psql -c 'VACUUM (ANALYZE) {row['schema']}.{row['name']}'",
            level="P2",
        )
        for row in await patient.rows(_BLOAT, _DEAD_ROWS_MAX)
    ]


CHECKS: tuple[Check, ...] = (clock, listening, session, old_transactions, bloat)
