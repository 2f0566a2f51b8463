"""What a database has: our bookkeeping, and the live catalog it is compared with."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

OWNER = "livewell_owner"
ROLES = (OWNER, "livewell_api", "livewell_operate", "livewell_hub", "livewell_worker", "livewell_readonly")
CATALOG_SQL = (Path(__file__).parent / "catalog.sql").read_text(encoding="utf-8")
FUNCTIONS_SQL = (Path(__file__).parent / "functions.sql").read_text(encoding="utf-8")

# Definitions print differently under other settings of the session.
STEADY_SQL = """\
SET LOCAL search_path = '';
SET LOCAL timezone = 'UTC';
SET LOCAL datestyle = 'ISO, YMD';
SET LOCAL intervalstyle = 'postgres';
SET LOCAL quote_all_identifiers = off;
SET LOCAL extra_float_digits = 1;
SET LOCAL bytea_output = 'hex';
"""

# The catalogs may be read by everyone, also by someone without USAGE on the schema (to_regclass
# would fail there).
_WHERE_SQL = """
SELECT
    current_user AS me,
    (SELECT pg_catalog.pg_get_userbyid(n.nspowner)::text FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell') AS owner,
    EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = 'livewell' AND c.relname = 'release') AS installed,
    ARRAY(
        SELECT r.rolname::text
        FROM pg_catalog.pg_roles r
        LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = 'livewell'
        WHERE r.rolname = ANY (%s) AND (n.oid IS NULL OR has_schema_privilege(r.oid, n.oid, 'USAGE'))
    ) AS roles
"""


@dataclass(frozen=True, slots=True)
class Books:
    """What the migrator wrote down when it last ran here.

    And which of our roles exist and may use the schema.
    """

    me: str
    owner: str | None = None
    roles: frozenset[str] = frozenset()
    version: str | None = None
    catalog: dict[str, str] = field(default_factory=dict)
    numbered: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    functions: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    grants: dict[str, str] = field(default_factory=dict)

    @property
    def with_roles(self) -> bool:
        """Whether the schema belongs to livewell_owner, so that grants apply."""
        return self.owner == OWNER


@dataclass(frozen=True, slots=True)
class State:
    """Our books, and what is really there."""

    books: Books
    functions: dict[str, str]
    catalog: dict[str, str]


def read_books(connection: psycopg.Connection[Any]) -> Books:
    """Read the bookkeeping tables; an empty database gives empty books."""
    with connection.transaction():
        me, owner, installed, roles = _one(connection, _WHERE_SQL, (list(ROLES),))
        if not installed:
            return Books(me, owner, frozenset(roles))
        version, catalog = connection.execute("SELECT version, catalog FROM livewell.release").fetchone() or (None, {})
        numbered = connection.execute("SELECT package, number, name, checksum FROM livewell.migration").fetchall()
        functions = connection.execute(
            "SELECT package, name, checksum, installed_hash FROM livewell.function_source"
        ).fetchall()
        grants = connection.execute("SELECT package, checksum FROM livewell.grant_source").fetchall()
    return Books(
        me,
        owner,
        frozenset(roles),
        version,
        catalog,
        {(package, number): (name, checksum) for package, number, name, checksum in numbered},
        {(package, name): (checksum, installed) for package, name, checksum, installed in functions},
        dict(grants),
    )


def read_catalog(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Describe the live tables, as catalog.sql does."""
    with connection.transaction():
        connection.execute(STEADY_SQL)
        return dict(connection.execute(CATALOG_SQL).fetchall())


def read_functions(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Hash the live functions, as functions.sql does."""
    with connection.transaction():
        connection.execute(STEADY_SQL)
        return dict(connection.execute(FUNCTIONS_SQL).fetchall())


def read_state(connection: psycopg.Connection[Any]) -> State:
    """Read books and live catalog that belong together: again, if someone migrated in between."""
    while True:
        books = read_books(connection)
        state = State(books, read_functions(connection), read_catalog(connection))
        if read_books(connection) == books:
            return state


def _one(connection: psycopg.Connection[Any], query: str, parameters: tuple[object, ...]) -> tuple[Any, ...]:
    row = connection.execute(query, parameters).fetchone()
    assert row is not None  # noqa: S101  a SELECT without FROM
    return tuple(row)
