"""Turn a plan into SQL.

The SQL is the same for `migrate`, which runs it, and for `livewell migrate --print`, which hands it
to a DBA.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from psycopg.sql import SQL, Composed, Literal

from livewell.db.migrate.bundle import Bundle
from livewell.db.migrate.plan import Plan, Roles, make_plan
from livewell.db.migrate.state import CATALOG_SQL, FUNCTIONS_SQL, STEADY_SQL, Books, State

ROLES_SQL = (Path(__file__).parent / "roles.sql").read_text(encoding="utf-8")

# Only inside a transaction does SET LOCAL last until the DO block. Without one the schema is not
# created, and every later statement fails harmlessly.
_SCHEMA_SQL = """\
SET LOCAL livewell.in_transaction = 'yes';
DO $schema$
BEGIN
    IF current_setting('livewell.in_transaction', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'this script must run as one transaction' USING HINT = 'psql -1 -f FILE';
    END IF;
    CREATE SCHEMA livewell{authorization};
END
$schema$;
COMMENT ON SCHEMA livewell IS 'Livewell: jobs and fresh data. Changed only by: livewell migrate.';
"""

# Bodies are checked once all functions exist, so their files need no order.
_VALIDATE_SQL = """\
SET LOCAL check_function_bodies = on;
DO $validate$
BEGIN
    PERFORM CASE l.lanname WHEN 'plpgsql' THEN pg_catalog.plpgsql_validator(p.oid) ELSE pg_catalog.fmgr_sql_validator(p.oid) END
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell') AND l.lanname IN ('plpgsql', 'sql');
END
$validate$;
"""

_MIGRATION = SQL(
    "INSERT INTO livewell.migration (package, number, name, checksum, release) VALUES ({}, {}, {}, {}, {});\n"
)
_FUNCTION = SQL("""\
INSERT INTO livewell.function_source (package, name, checksum, installed_hash) VALUES ({}, {}, {}, '')
ON CONFLICT (package, name) DO UPDATE SET checksum = excluded.checksum, installed_hash = '', applied_at = excluded.applied_at;
""")
_GRANT = SQL("""\
INSERT INTO livewell.grant_source (package, checksum) VALUES ({}, {})
ON CONFLICT (package) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at;
""")
# The hashes of what was just applied; rows of functions that a numbered file has dropped go.
_INSTALLED = SQL("""\
UPDATE livewell.function_source s SET installed_hash = live.hash FROM (
{}) AS live WHERE live.name = s.name AND s.installed_hash = '';
DELETE FROM livewell.function_source s
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'livewell' AND p.proname = s.name
);
""")
_RELEASE = SQL("""\
INSERT INTO livewell.release (version, catalog) SELECT {}, jsonb_object_agg(live.object, live.definition) FROM (
{}) AS live
ON CONFLICT (only_row) DO UPDATE SET version = excluded.version, catalog = excluded.catalog, applied_at = excluded.applied_at;
""")


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of the script, with a title for the reader and for errors."""

    title: str
    sql: str


def steps(plan: Plan) -> Iterator[Step]:
    """Give the script of a plan; the roles come before it, in a transaction of their own."""
    yield Step("settings", STEADY_SQL)
    if plan.schema:
        yield Step("schema", _SCHEMA_SQL.format(authorization=" AUTHORIZATION livewell_owner" if plan.roles else ""))
    if plan.roles:
        yield Step("owner", "SET LOCAL ROLE livewell_owner;\n")
    yield Step("settings", "SET LOCAL check_function_bodies = off;\n")
    for file in plan.files():
        yield Step(file.label, file.sql)
    yield Step("function bodies", _VALIDATE_SQL)
    yield Step("books", _books_sql(plan))


def render(roles: Roles = "create", *, bundle: Bundle | None = None) -> str:
    """Write the whole installation as one script for an empty database.

    `livewell migrate --print | psql -1 DATABASE`.
    """
    bundle = bundle or Bundle.load()
    plan = make_plan(bundle, State(Books(me=""), {}, {}), roles)
    head = f"-- Livewell {bundle.version}: the whole schema, for an empty database. Run as a superuser, as one transaction: psql -1 -f FILE DATABASE\n"
    parts = [Step("roles", ROLES_SQL)] if plan.roles else []
    return head + "".join(f"\n-- ── {step.title} ──\n{step.sql}" for step in (*parts, *steps(plan)))


def _books_sql(plan: Plan) -> str:
    """Write down what ran."""
    version = Literal(plan.version)
    lines: list[Composed] = []
    for package in plan.packages:
        lines += [
            _MIGRATION.format(*map(Literal, (file.package, file.number, file.name, file.checksum)), version)
            for file in package.numbered
        ]
        lines += [
            _FUNCTION.format(*map(Literal, (file.package, name, file.checksum)))
            for file in (*package.numbered, *package.functions)
            for name in file.creates
        ]
        if package.grants:
            lines.append(_GRANT.format(Literal(package.name), Literal(package.grants.checksum)))
    lines += [_INSTALLED.format(SQL(FUNCTIONS_SQL)), _RELEASE.format(version, SQL(CATALOG_SQL))]
    return "".join(line.as_string(None) for line in lines)
