"""Bring a database to this release: one transaction, one migrator at a time, nobody kept waiting.

    look ──nothing to do──▶ done (no lock taken)
      │
      └──▶ roles ──▶ try the lock ──taken──▶ pause, look again
                          │
                          └──ours──▶ look again, run ──lock_timeout──▶ roll back, pause, try again
                                              └──▶ commit

No transaction is open during a pause. A statement of ours waits at most 100 ms for a lock, so
statements that queue behind it wait no longer than that (T10). The lock is a transaction's, never a
session's, so this works through PgBouncer too (T7).
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.types.json import Jsonb

from livewell.db.migrate.bundle import Bundle
from livewell.db.migrate.plan import Plan, Roles, make_plan
from livewell.db.migrate.script import ROLES_SQL, Step, steps
from livewell.db.migrate.state import read_catalog, read_state
from livewell.errors import DatabaseUnavailable, MigrationError

_LOCK = int.from_bytes(b"livewell")
_PAUSE_SECONDS = (0.1, 0.5)
_LIMITS_SQL = """\
SET LOCAL lock_timeout = '100ms';
SET LOCAL statement_timeout = '10min';
SET LOCAL idle_in_transaction_session_timeout = '1min';
"""
_OLDEST_SQL = """
SELECT pid, application_name, state, extract(epoch FROM clock_timestamp() - xact_start)::integer
FROM pg_catalog.pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'
ORDER BY xact_start
LIMIT 1
"""
# Someone else's lock, or another database that makes the same cluster-wide role this very moment:
# roll back, pause, again.
_COLLISIONS = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)
_ROLE_COLLISIONS = (errors.DuplicateObject, errors.UniqueViolation)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What `migrate` did. `applied` names the files that ran; empty when the schema was current."""

    version_before: str | None
    version: str
    applied: tuple[str, ...]
    attempts: int
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether this call, and not another process, brought the schema to its version."""
        return self.version_before != self.version or bool(self.applied)


class _BusyError(Exception):
    """Another migrator is at work, here or on the roles we share."""


def migrate(
    dsn: str, *, roles: Roles = "create", wait_seconds: float = 60, bundle: Bundle | None = None
) -> MigrationReport:
    """Install or upgrade schema livewell; does nothing when it is current.

    `roles="none"` leaves cluster-wide roles alone: everything belongs to the current user, and
    nothing is granted. `wait_seconds` bounds how long we try when another migrator or an open
    transaction holds what we need.
    """
    bundle = bundle or Bundle.load()
    started = time.monotonic()
    deadline = started + wait_seconds
    attempts = 0

    def report(plan: Plan, applied: tuple[str, ...]) -> MigrationReport:
        return MigrationReport(plan.version_before, plan.version, applied, attempts, time.monotonic() - started)

    with connect(dsn) as connection:
        plan = make_plan(bundle, read_state(connection), roles)
        if plan.empty:
            return report(plan, ())
        if plan.roles:
            _retry(connection, lambda: _make_roles(connection), deadline)

        def attempt() -> tuple[Plan, tuple[str, ...]]:
            nonlocal attempts
            attempts += 1
            return _attempt(connection, bundle, roles)

        done, applied = _retry(connection, attempt, deadline)
        return report(done, applied)


@contextmanager
def connect(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """Open the migrator's own connection; a server that does not answer is DatabaseUnavailable."""
    try:
        connection = psycopg.connect(
            dsn, autocommit=True, prepare_threshold=None, connect_timeout=10, application_name="livewell migrate"
        )
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"livewell migrate: the database did not answer: {str(error).strip()}") from error
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    with connection:
        try:
            yield connection
        except errors.InsufficientPrivilege as error:
            raise MigrationError(
                f'livewell migrate: "{connection.info.user}" may not read what is installed: {str(error).strip()}. '
                "Run, as an administrator, what fits its work: GRANT livewell_worker TO "
                f'"{connection.info.user}" (workers, and apps that enqueue), '
                "or livewell_operate (operators), or livewell_readonly (to look)"
            ) from error
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(f"livewell migrate: the database went away: {str(error).strip()}") from error
        except psycopg.Error as error:
            raise MigrationError(f"livewell migrate: {str(error).strip()}") from error


def _make_roles(connection: psycopg.Connection[Any]) -> None:
    try:
        with connection.transaction():
            connection.execute(_LIMITS_SQL)
            connection.execute(ROLES_SQL.encode())
    except _ROLE_COLLISIONS as error:
        raise _BusyError("roles: another database is making them") from error
    except errors.InternalError_ as error:
        if "tuple concurrently" in str(error):
            raise _BusyError("roles: another database is making them") from error
        raise
    except errors.InsufficientPrivilege as error:
        raise MigrationError(
            f"livewell migrate: may not prepare the roles: {str(error).strip()}. Let a superuser run: livewell "
            "migrate --print | psql -1, "
            f'or: GRANT livewell_owner TO "{connection.info.user}"; or migrate with --roles none.'
        ) from error


def _attempt(connection: psycopg.Connection[Any], bundle: Bundle, roles: Roles) -> tuple[Plan, tuple[str, ...]]:
    with connection.transaction():
        connection.execute(_LIMITS_SQL)
        got = connection.execute("SELECT pg_catalog.pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone()
        if got != (True,):
            raise _BusyError("another migration of this database is running")
        state = read_state(connection)
        plan = make_plan(bundle, state, roles)
        if plan.empty:
            return plan, ()
        for step in steps(plan):
            _run(connection, step)
        if plan.drift:
            _keep_drift(connection, plan, state.catalog)
    return plan, tuple(file.label for file in plan.files())


def _run(connection: psycopg.Connection[Any], step: Step) -> None:
    try:
        connection.execute(step.sql.encode())
    except _COLLISIONS as error:
        raise _BusyError(f"{step.title}: {str(error).strip()}") from error
    except psycopg.Error as error:
        raise MigrationError(_failure(step, error)) from error


def _keep_drift(connection: psycopg.Connection[Any], plan: Plan, before: dict[str, str]) -> None:
    """Do not forget a change by hand, unless this migration has changed the same object."""
    after = read_catalog(connection)
    kept = dict(after)
    for key, left in plan.drift.items():
        if after.get(key) == before.get(key):
            kept.pop(key, None)
            kept |= {} if left is None else {key: left}
    connection.execute("UPDATE livewell.release SET catalog = %s", (Jsonb(kept),))


def _retry(connection: psycopg.Connection[Any], act: Callable[[], T], deadline: float) -> T:
    while True:
        try:
            return act()
        except (*_COLLISIONS, _BusyError) as error:
            pause = random.uniform(*_PAUSE_SECONDS)  # noqa: S311  jitter, not a secret
            if time.monotonic() + pause > deadline:
                raise MigrationError(_gave_up(connection, error)) from error
            time.sleep(pause)


def _gave_up(connection: psycopg.Connection[Any], error: Exception) -> str:
    oldest = connection.execute(_OLDEST_SQL).fetchone()
    hint = "Run it again."
    if oldest:
        pid, name, state, seconds = oldest
        hint = (
            f'The oldest open transaction here is of pid {pid} ("{name}", {state}, {seconds} s). Wait for it or '
            "end it with "
            f"SELECT pg_terminate_backend({pid}); then run: livewell migrate"
        )
    return f"livewell migrate: gave up, nothing was changed: {str(error).strip()}. {hint}"


def _failure(step: Step, error: psycopg.Error) -> str:
    line = ""
    if error.diag.statement_position:
        line = f" line {step.sql.count(chr(10), 0, int(error.diag.statement_position) - 1) + 1}"
    return f"livewell migrate: {step.title}{line}: {str(error).strip()}. Nothing was changed."
