"""Databases for tests and demos: a migrated template, a clone per test, and a clock to move.

They are in db because only this package speaks to Postgres directly. livewell.testing and demos use
them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell.db.migrate import migrate

_TRIES = 60

_DAYS = ("SELECT livewell.ensure_history_days(14)", "SELECT livewell.ensure_event_days(14)")

# livewell.now() reads this one row; everything else in the schema asks livewell.now().
_CLOCK = """
CREATE SCHEMA livewell_test;
CREATE TABLE livewell_test.clock (ahead interval NOT NULL, frozen_at timestamptz);
INSERT INTO livewell_test.clock VALUES ('0', NULL);
GRANT USAGE ON SCHEMA livewell_test TO PUBLIC;
GRANT SELECT ON livewell_test.clock TO PUBLIC;
CREATE OR REPLACE FUNCTION livewell.now() RETURNS timestamptz LANGUAGE sql VOLATILE SET search_path = '' AS
    'SELECT coalesce(frozen_at, pg_catalog.clock_timestamp()) + ahead FROM livewell_test.clock';
"""


def sibling(dsn: str, database: str) -> str:
    """The same server, another database."""
    return make_conninfo("", **{**conninfo_to_dict(dsn), "dbname": database})


def make_template(dsn: str, name: str) -> None:
    """Create and migrate a template database, unless it exists already.

    Safe when several processes try at once.
    """
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (name,))
        if admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone():
            return
        building = f"{name}_new"
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(building)))
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(building)))
        migrate(sibling(dsn, building))
        with psycopg.connect(sibling(dsn, building), autocommit=True) as fresh:
            for days in _DAYS:
                fresh.execute(days)
        _patiently(
            lambda: admin.execute(
                sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(building), sql.Identifier(name))
            )
        )


def clone(dsn: str, template: str, name: str) -> str:
    """Make a database from the template; answers its address."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        _patiently(lambda: admin.execute(statement))
    return sibling(dsn, name)


def create(dsn: str, name: str) -> str:
    """Make an empty database; answers its address as a URL any driver reads."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def drop(dsn: str, name: str) -> None:
    """Remove a database and whoever is still connected to it."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def empty(dsn: str, schemas: Sequence[str]) -> None:
    """Remove schemas and all that is in them."""
    names = sql.SQL(", ").join(map(sql.Identifier, schemas))
    with psycopg.connect(dsn, autocommit=True, options="-c client_min_messages=error") as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(names))


class TestClock:
    """Moves livewell.now() of one database. Durations measured in Python are not affected."""

    __test__ = False

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._run(_CLOCK)

    def advance(self, seconds: float) -> None:
        """Let time pass; the day partitions of the days that are reached are made."""
        self._run("UPDATE livewell_test.clock SET ahead = ahead + %s * interval '1 second'", (seconds,))
        for days in _DAYS:
            with suppress(psycopg.errors.UndefinedFunction):
                self._run(days)

    def freeze(self) -> None:
        """Stop the clock; advance() still moves it."""
        self._run("UPDATE livewell_test.clock SET frozen_at = coalesce(frozen_at, pg_catalog.clock_timestamp())")

    def _run(self, query: str, params: tuple[float, ...] | None = None) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(query.encode(), params)


def _patiently(act: Callable[[], object]) -> None:
    """Copying or renaming a database fails while anybody is connected to it.

    The tests of other processes are, briefly.
    """
    for left in reversed(range(_TRIES)):
        try:
            act()
        except (psycopg.errors.ObjectInUse, psycopg.errors.UniqueViolation):
            if left == 0:
                raise
            time.sleep(random.uniform(0.02, 0.2))  # noqa: S311 - jitter
        else:
            return
