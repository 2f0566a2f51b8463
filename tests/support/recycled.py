"""A migrated database for each test, cleaned and handed on instead of copied and dropped.

    template ──copy──▶ in a test ──cleaned, catalog as it was, new name──▶ in the next test
                            └──anything differs, or 200 tests──▶ dropped, and the next test gets a copy

To copy a database and drop it takes about ten times as long as to empty it. What a test may rely on
is the same: nobody is connected, every row, sequence, function and statistic is as in the template,
and the name is new, so that whoever a test left behind finds no database, as after a drop. Objects
that tests add are dropped and functions that they replaced are put back; afterwards the catalog is
compared with the template's, and if it differs the database is dropped.
"""

from __future__ import annotations

import gc
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from livewell.db import scratch

_USES_MAX = 200  # dropped tables leave dead rows in the catalog, which nobody vacuums in time
_GONE_SECONDS_MAX = 10.0
_OURS = "oid >= 16384 OR nspname = 'public'"

_OTHERS = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"

# What a test added: first whole schemas, then what lies in ours.
_ADDED = """
SELECT format('DROP SCHEMA IF EXISTS %%I CASCADE', nspname) FROM pg_namespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND NOT oid = ANY (%(schemas)s::oid[])
UNION ALL
SELECT format('DROP %%s IF EXISTS %%s CASCADE', CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
    WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END, oid::regclass)
FROM pg_class
WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c') AND relnamespace = ANY (%(schemas)s::oid[])
    AND NOT oid = ANY (%(relations)s::oid[])
UNION ALL
SELECT format('DROP ROUTINE IF EXISTS %%s CASCADE', oid::regprocedure) FROM pg_proc
WHERE pronamespace = ANY (%(schemas)s::oid[]) AND NOT oid = ANY (%(functions)s::oid[])
"""

_FUNCTIONS = "SELECT p.oid::bigint, md5(p::text) FROM pg_proc p WHERE p.pronamespace = ANY (%s::oid[])"

_FILLED = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND oid = ANY (%s::oid[]) AND pg_relation_size(oid) > 0 ORDER BY 1
"""

_SEQUENCES = """
SELECT s.seqrelid::bigint, pg_sequence_last_value(s.seqrelid), s.seqstart FROM pg_sequence s
JOIN pg_class c ON c.oid = s.seqrelid WHERE c.relnamespace = ANY (%s::oid[]) ORDER BY 1
"""

# Statistics of a test before would choose the plans of the next one.
_FORGET = """
SELECT pg_stat_reset();
DELETE FROM pg_statistic WHERE starelid >= 16384;
UPDATE pg_class SET relpages = 0, reltuples = -1, relallvisible = 0
WHERE oid >= 16384 AND relkind = 'r' AND reltuples <> -1 AND pg_relation_size(oid) = 0;
"""

# Whether anything of the catalog was written since a transaction, or is gone: a statement other than
# INSERT, UPDATE and DELETE. 3 ms, where to look at all of it takes 25.
_WATCHED = [
    "pg_namespace",
    "pg_class",
    "pg_attribute",
    "pg_attrdef",
    "pg_index",
    "pg_constraint",
    "pg_trigger",
    "pg_policy",
    "pg_proc",
    "pg_type",
    "pg_enum",
    "pg_rewrite",
    "pg_sequence",
    "pg_inherits",
    "pg_default_acl",
    "pg_extension",
    "pg_event_trigger",
    "pg_publication",
    "pg_statistic_ext",
    "pg_largeobject_metadata",
]
_SHARED = {
    "pg_database": "datname = current_database()",
    "pg_db_role_setting": "setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())",
}
_WRITTEN = " UNION ALL ".join(
    [
        f"SELECT count(*), count(*) FILTER (WHERE age(xmin) <= age(%(since)s::xid)) FROM {catalog} WHERE {which}"
        for catalog, which in {**dict.fromkeys(_WATCHED, "true"), **_SHARED}.items()
    ]
    + [
        f"SELECT count(*), 0 FROM {catalog} WHERE database = current_database()"
        for catalog in ("pg_replication_slots", "pg_prepared_xacts")
    ]
)

# Everything that a statement other than INSERT, UPDATE and DELETE could have changed.
_CATALOG = """
WITH schema AS (SELECT oid FROM pg_namespace WHERE oid = ANY (%(schemas)s::oid[])),
relation AS (SELECT c.oid FROM pg_class c JOIN schema s ON s.oid = c.relnamespace),
line (text) AS (
    SELECT n::text FROM pg_namespace n WHERE nspname !~ '^pg_(toast_)?temp'
    UNION ALL SELECT concat_ws(' ', c.oid, relname, relnamespace, reltype, reloftype, relowner, relam, relkind,
        relpersistence, relispartition, relrowsecurity, relforcerowsecurity, relreplident, relacl, reloptions,
        pg_get_expr(relpartbound, c.oid)) FROM pg_class c JOIN relation USING (oid)
    UNION ALL SELECT concat_ws(' ', attrelid, attnum, attname, atttypid, atttypmod, attnotnull, attstorage,
        attcompression, attidentity, attgenerated, attisdropped, attcollation, attstattarget, attacl, attoptions)
        FROM pg_attribute JOIN relation ON attrelid = oid WHERE attnum > 0
    UNION ALL SELECT concat_ws(' ', adrelid, adnum, pg_get_expr(adbin, adrelid))
        FROM pg_attrdef d JOIN relation r ON adrelid = r.oid
    UNION ALL SELECT concat_ws(' ', indexrelid, indrelid, indisunique, indisvalid, indisready, indkey, indoption,
        pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid))
        FROM pg_index JOIN relation ON indrelid = oid
    UNION ALL SELECT concat_ws(' ', c.oid, conname, conrelid, contype, condeferrable, convalidated, confrelid, conkey)
        FROM pg_constraint c WHERE connamespace IN (SELECT oid FROM schema)
    UNION ALL SELECT concat_ws(' ', t.oid, tgrelid, tgname, tgfoid, tgtype, tgenabled)
        FROM pg_trigger t JOIN relation r ON tgrelid = r.oid
    UNION ALL SELECT p::text FROM pg_policy p
    UNION ALL SELECT p::text FROM pg_proc p JOIN schema s ON s.oid = pronamespace
    UNION ALL SELECT concat_ws(' ', t.oid, typname, typowner, typacl) FROM pg_type t JOIN schema s ON s.oid = typnamespace
    UNION ALL SELECT e::text FROM pg_enum e
    UNION ALL SELECT concat_ws(' ', r.oid, ev_class, rulename, ev_enabled, md5(ev_action::text))
        FROM pg_rewrite r JOIN relation c ON ev_class = c.oid
    UNION ALL SELECT s::text FROM pg_sequence s
    UNION ALL SELECT i::text FROM pg_inherits i
    UNION ALL SELECT d::text FROM pg_default_acl d
    UNION ALL SELECT e::text FROM pg_extension e
    UNION ALL SELECT e::text FROM pg_event_trigger e
    UNION ALL SELECT p::text FROM pg_publication p
    UNION ALL SELECT e::text FROM pg_statistic_ext e
    UNION ALL SELECT l::text FROM pg_largeobject_metadata l
    UNION ALL SELECT concat_ws(' ', setrole, setconfig) FROM pg_db_role_setting
        WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
    UNION ALL SELECT concat_ws(' ', datdba, datallowconn, datconnlimit, datacl) FROM pg_database
        WHERE datname = current_database()
    UNION ALL SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()
    UNION ALL SELECT gid FROM pg_prepared_xacts WHERE database = current_database()
)
SELECT md5(string_agg(text, chr(10) ORDER BY text)) FROM line
"""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What a copy looks like before any test has used it."""

    schemas: list[int]
    relations: list[int]
    functions: dict[int, str]  # the hash of each
    definitions: dict[int, str]
    rows: dict[str, tuple[str, bytes]]  # of tables that are not empty: their hash and how COPY writes them
    sequences: list[tuple[Any, ...]]
    catalog: str


class Recycler:
    """Databases for the tests of one process, one at a time."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._admin: psycopg.Connection | None = None
        self._pattern: _Pattern | None = None
        self._name: str | None = None
        self._begin: _Begin | None = None
        self._uses = 0
        self.copied = 0

    def take(self) -> str:
        """The address of a database as the template is."""
        if self._name is None:
            name = _new_name()
            scratch.clone(self._server, self._template, name)
            self._name, self._uses = name, 0
            self.copied += 1
            if self._pattern is None:
                self._pattern = self._read_pattern(name)
        self._uses += 1
        return scratch.sibling(self._server, self._name)

    def give_back(self) -> None:
        """Clean the database for the next test, or drop it."""
        name, self._name = self._name, None
        assert name is not None
        if self._uses < _USES_MAX:
            with suppress(psycopg.Error, TimeoutError, _Different):
                self._name = self._cleaned(name)
        if self._name is None:
            self._drop(name)

    def close(self) -> None:
        """Drop what is left."""
        if self._name is not None:
            self._drop(self._name)
        if self._admin is not None:
            self._admin.close()

    def _drop(self, name: str) -> None:
        gc.collect()  # a login that was cancelled holds its socket until then, and DROP DATABASE waits for its backend
        with psycopg.connect(self._server, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _cleaned(self, name: str) -> str:
        """The new name of that database, once it is as it was."""
        assert self._pattern is not None
        admin = self._connected()
        admin.execute(f"SELECT pg_terminate_backend(pid) FROM ({_OTHERS}) AS other", (name,))
        self._wait_until_alone(admin, name)
        with psycopg.connect(scratch.sibling(self._server, name), autocommit=True) as connection:
            begin, self._begin = self._begin, None
            _prepare(connection)
            if begin is None or begin.is_over(connection):
                _clean_catalog(connection, self._pattern)
                _clean_rows(connection, self._pattern)
                if _catalog(connection, self._pattern.schemas) != self._pattern.catalog:
                    raise _Different
            else:
                _clean_rows(connection, self._pattern)
            counts = [count for count, _ in connection.execute(_WRITTEN.encode(), {"since": "3"}).fetchall()]
        self._wait_until_alone(admin, name)
        new = _new_name()
        admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(name), sql.Identifier(new)))
        next_transaction = admin.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
        assert next_transaction is not None
        self._begin = _Begin(next_transaction[0], counts)
        return new

    def _connected(self) -> psycopg.Connection:
        """To the server; again, if a test has killed it."""
        if self._admin is not None:
            try:
                self._admin.execute("SELECT 1")
            except psycopg.OperationalError:
                self._admin.close()
                self._admin = None
            else:
                return self._admin
        self._admin = psycopg.connect(self._server, autocommit=True)
        return self._admin

    @staticmethod
    def _wait_until_alone(admin: psycopg.Connection, name: str) -> None:
        """A backend needs a moment to go.

        To rename a database with somebody in it waits in steps of 100 ms.
        """
        until = time.monotonic() + _GONE_SECONDS_MAX
        while admin.execute(_OTHERS, (name,)).fetchone():
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(0.002)

    def _read_pattern(self, name: str) -> _Pattern:
        with psycopg.connect(scratch.sibling(self._server, name), autocommit=True) as connection:
            schemas = [
                row[0]
                for row in connection.execute(
                    "SELECT oid::bigint FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> "
                    f"'information_schema' AND ({_OURS})"
                )
            ]
            relations = connection.execute(
                "SELECT oid::bigint FROM pg_class WHERE relnamespace = ANY (%s::oid[])", (schemas,)
            ).fetchall()
            functions: dict[int, str] = dict(connection.execute(_FUNCTIONS, (schemas,)).fetchall())
            definitions = connection.execute(
                "SELECT oid::bigint, pg_get_functiondef(oid) FROM pg_proc WHERE oid = ANY (%s::oid[]) AND "
                "prokind IN ('f', 'p')",
                (list(functions),),
            ).fetchall()
            oids = [row[0] for row in relations]
            filled = [row[0] for row in connection.execute(_FILLED, (oids,)).fetchall()]
            return _Pattern(
                schemas=schemas,
                relations=oids,
                functions=functions,
                definitions=dict(definitions),
                rows={table: (_hash(connection, table), _copy_out(connection, table)) for table in filled},
                sequences=connection.execute(_SEQUENCES, (schemas,)).fetchall(),
                catalog=_catalog(connection, schemas),
            )


class _Different(Exception):
    """Something is left that cleaning does not know."""


@dataclass(frozen=True, slots=True)
class _Begin:
    """The catalog when a test began: rows of each part, and the next transaction."""

    transaction: str
    counts: list[int]

    def is_over(self, connection: psycopg.Connection) -> bool:
        """True if the catalog was written since."""
        rows = connection.execute(_WRITTEN.encode(), {"since": self.transaction}).fetchall()
        return [count for count, _ in rows] != self.counts or any(written for _, written in rows)


def _prepare(connection: psycopg.Connection) -> None:
    connection.execute(
        "SET session_replication_role = replica; SET client_min_messages = error; SET lock_timeout = '5s'"
    )


def _clean_catalog(connection: psycopg.Connection, pattern: _Pattern) -> None:
    """Drop what was added, and put back functions that were replaced."""
    known = {"schemas": pattern.schemas, "relations": pattern.relations, "functions": list(pattern.functions)}
    added = connection.execute(_ADDED, known).fetchall()
    for (statement,) in added:
        connection.execute(statement.encode())
    for oid, found in connection.execute(_FUNCTIONS, (pattern.schemas,)).fetchall():
        if found != pattern.functions.get(oid):
            connection.execute(pattern.definitions[oid].encode())


def _clean_rows(connection: psycopg.Connection, pattern: _Pattern) -> None:
    """Rows, sequences and statistics as they were."""
    _empty(connection, pattern)
    for number, (now, before) in enumerate(
        zip(connection.execute(_SEQUENCES, (pattern.schemas,)).fetchall(), pattern.sequences, strict=True)
    ):
        if now != before:
            oid, last, start = pattern.sequences[number]
            connection.execute("SELECT setval(%s::oid::regclass, %s, %s)", (oid, last or start, last is not None))
    connection.execute(_FORGET)


def _empty(connection: psycopg.Connection, pattern: _Pattern) -> None:
    filled = [row[0] for row in connection.execute(_FILLED, (pattern.relations,)).fetchall()]
    extra = [table for table in filled if table not in pattern.rows]
    if extra:
        connection.execute(f"TRUNCATE {', '.join(extra)} CASCADE".encode())
    changed = [table for table, (before, _) in pattern.rows.items() if _hash(connection, table) != before]
    if changed:
        connection.execute(f"TRUNCATE {', '.join(pattern.rows)} CASCADE".encode())
        for table, (_, written) in pattern.rows.items():
            with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
                copy.write(written)


def _hash(connection: psycopg.Connection, table: str) -> str:
    query = f"SELECT md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '')) FROM {table} AS t"
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


def _copy_out(connection: psycopg.Connection, table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT".encode()) as copy:
        return b"".join(bytes(part) for part in copy)


def _catalog(connection: psycopg.Connection, schemas: list[int]) -> str:
    row = connection.execute(_CATALOG, {"schemas": schemas}).fetchone()
    assert row is not None
    return str(row[0])


def _new_name() -> str:
    return f"livewell_test_{secrets.token_hex(6)}"
