"""Rules that hold for every object in schema livewell, whichever package made it (contract 18).

A rule is a query that names its offenders. Each comes with a statement that breaks it, so that no
rule passes because it looks at nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

import livewell
from livewell.db.migrate import migrate
from tests.support.servers import new_database

Connection = psycopg.Connection[Any]

# Functions that may run with the rights of their owner: name → reason. No other may.
CONTACTS = (
    "no role has a right on tables of contacts; it enters the tenant it is given, and row security holds it to that"
)
RESUMES = (
    "no role has a right on tables of documents; it acts for the user it is given, and row security holds it to that"
)
EXPORTS = "livewell_api has no table rights; it acts only on rows of the user it is given"
DEFINER_ALLOWED = {
    "warn": "livewell_api has no table rights, and nobody shall write a warning that was not redacted and bounded",
    "audit_act": "whoever may act writes a line of the audit, redacted and bounded, and can neither change nor "
    "delete one",
    "mint_key": "nobody but the owner writes keys; it compares the secret of the administrator's own key, and gives "
    "no scope that this key lacks",
    "withdraw_keys": "nobody but the owner writes keys; it compares the secret of the administrator's own key, and "
    "can only revoke",
    "record_act": "whoever may act writes a line of the audit, redacted and bounded, and can neither change nor "
    "delete one",
    "prune_audit": "nobody but the owner deletes lines of the audit; its inputs are two bounded numbers, and no "
    "line of the last ninety days goes",
    "raise_fences": "setval needs a right that would let a worker turn the numbers back; it has no input and "
    "does nothing twice",
    "ensure_history_days": "workers insert history but do not own it; making a day's partition needs the owner; "
    "its only input is a bounded number",
    "open_session": "livewell_api has no table rights; it acts only on sessions of the user it is given",
    "heartbeat_session": "livewell_api has no table rights; it acts only on sessions of the user it is given",
    "close_session": "livewell_api has no table rights; it acts only on sessions of the user it is given",
    "subscribe": "livewell_api has no table rights; it acts only on sessions of the user it is given",
    "unsubscribe": "livewell_api has no table rights; it acts only on sessions of the user it is given",
    "count_viewers": "operators and readers may know how many look at a key, and not who; it answers a number",
    "watched_keys": "operators and readers may know how many look at which key, and not who; it answers keys "
    "and numbers",
    "sample_watched": "operators and readers may know which share of what is looked at is fresh, and not who "
    "looks; it answers types and numbers",
    "read_through": "livewell_api has no table rights; it reads one key, and of a user it touches the budget alone",
    "read_key": "livewell_api has no table rights; it reads one key, and of a user it touches the budget alone",
    "change_type": "nobody but the owner writes the registry by hand; an operator changes these two things, "
    "within their bounds",
    "find_key": "livewell_api has no table rights; it acts only on the key it is given",
    "find_api_key": "livewell_api has no table rights; it acts only on the key it is given",
    "touch_key": "livewell_api has no table rights; it acts only on the key it is given",
    "end_login": "livewell_api has no table rights; it can end nothing but the one login it is given",
    "redeem_link": "livewell_api has no table rights; it uses up the link it is given, and makes a login with "
    "no more than its scopes",
    "test_channel": "an operator may test a channel and write no alert; its only input is the name of a channel",
    "resolve_contact": CONTACTS,
    "find_contact": CONTACTS,
    "show_contact": CONTACTS,
    "list_contacts": CONTACTS,
    "list_contact_conflicts": CONTACTS,
    "decide_contact_conflict": CONTACTS,
    "unmerge_contact": CONTACTS,
    "erase_contact": CONTACTS,
    "set_identity_policy": CONTACTS,
    "list_identity_policies": CONTACTS,
    "prune_contacts": "no role may delete rows of tenants; its only input is a bounded number",
    "state_contacts": "operators and readers may know how much waits, and not of whom; it answers numbers",
    "create_resume": RESUMES,
    "change_resume": RESUMES,
    "delete_resume": RESUMES,
    "show_resume": RESUMES,
    "list_resumes": RESUMES,
    "list_resume_versions": RESUMES,
    "state_resumes": "operators and readers may know how many documents there are, and not of whom; it answers numbers",
    "find_login_owner": "livewell_api has no table rights; it tells whose the one login is that it is given",
    "cancel_export": EXPORTS,
    "count_downloads": EXPORTS,
    "delete_export": EXPORTS,
    "follow_exports": EXPORTS,
    "forget_export_file": EXPORTS,
    "list_export_kinds": "livewell_api has no table rights; it answers what programs have declared",
    "list_exports": EXPORTS,
    "read_export_file": EXPORTS,
    "read_export_files": EXPORTS,
    "request_exports": EXPORTS,
    "show_export": EXPORTS,
    "show_export_batch": EXPORTS,
    "show_export_usage": EXPORTS,
    "drop_history_day": "dropping a partition needs the owner; its only input is a number of days, at least 1",
    "ensure_event_days": "workers insert events but do not own them; making a day's partition needs the owner; "
    "its only input is a bounded number",
    "drop_event_day": "dropping a partition needs the owner; its only inputs are numbers of days, at least 1",
    "raise_event_numbers": "setval needs a right that would let a worker turn the numbers back; it has no input and "
    "does nothing twice",
}
HOT_TABLES = [
    *("job", "worker", "stat", "warning", "ledger", "viewer", "viewer_session", "session_share", "singleton"),
    *("event_delivery", "event_flight", "relay"),
]

OURS = "(SELECT oid FROM pg_namespace WHERE nspname = 'livewell')"
ROLES = (
    "('livewell_owner'), ('livewell_api'), ('livewell_operate'), ('livewell_hub'), ('livewell_worker'), "
    "('livewell_readonly')"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """`offenders` gives one text per object that breaks it.

    `breaker` makes one that contains `named`.
    """

    name: str
    offenders: str
    breaker: str
    named: str = "bad"


BAD_FUNCTION = "CREATE FUNCTION livewell.bad() RETURNS int LANGUAGE sql {} AS 'SELECT 1'"

RULES = [
    Rule(
        "every function pins an empty search_path",
        f"""SELECT proname FROM pg_proc WHERE pronamespace = {OURS} AND NOT coalesce(proconfig, '{{}}') @> ARRAY['search_path=""']""",
        BAD_FUNCTION.format("SET search_path = public"),
    ),
    Rule(
        "no function is executable by PUBLIC",
        f"SELECT proname FROM pg_proc WHERE pronamespace = {OURS} AND has_function_privilege('public', oid, 'EXECUTE')",
        BAD_FUNCTION.format(""),
    ),
    Rule(
        "every function has a comment",
        f"SELECT proname FROM pg_proc WHERE pronamespace = {OURS} AND coalesce(obj_description(oid, 'pg_proc'), "
        "'') = ''",
        BAD_FUNCTION.format(""),
    ),
    Rule(
        "every function runs with its caller's rights, but for the short list",
        f"SELECT proname FROM pg_proc WHERE pronamespace = {OURS} AND prosecdef AND proname <> ALL "
        "(%(definer_allowed)s)",
        BAD_FUNCTION.format("SECURITY DEFINER"),
    ),
    Rule(
        "the short list of definer functions has no name that is not one",
        f"SELECT name FROM unnest(%(definer_allowed)s::text[]) AS name WHERE NOT EXISTS "
        f"(SELECT FROM pg_proc WHERE pronamespace = {OURS} AND proname = name AND prosecdef)",
        "ALTER FUNCTION livewell.warn SECURITY INVOKER",
        "warn",
    ),
    Rule(
        "livewell_owner owns every table, index, sequence and view",
        f"SELECT relname FROM pg_class WHERE relnamespace = {OURS} AND relowner <> 'livewell_owner'::regrole",
        "CREATE TABLE livewell.bad ()",
    ),
    Rule(
        "livewell_owner owns every function",
        f"SELECT proname FROM pg_proc WHERE pronamespace = {OURS} AND proowner <> 'livewell_owner'::regrole",
        BAD_FUNCTION.format(""),
    ),
    Rule(
        "livewell_owner owns every type",
        f"SELECT typname FROM pg_type WHERE typnamespace = {OURS} AND typowner <> 'livewell_owner'::regrole",
        "CREATE TYPE livewell.bad AS ENUM ()",
    ),
    Rule(
        "livewell_owner owns the schema",
        "SELECT nspname FROM pg_namespace WHERE nspname = 'livewell' AND nspowner <> 'livewell_owner'::regrole",
        "ALTER SCHEMA livewell OWNER TO CURRENT_USER",
        "livewell",
    ),
    Rule(
        "livewell_owner cannot log in and has no power beyond its objects",
        "SELECT rolname FROM pg_roles WHERE rolname = 'livewell_owner' "
        "AND (rolcanlogin OR rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)",
        "ALTER ROLE livewell_owner LOGIN",
        "livewell_owner",
    ),
    Rule(
        "none of our roles is a superuser or bypasses row security",
        "SELECT rolname FROM pg_roles WHERE rolname LIKE 'livewell\\_%%' AND (rolsuper OR rolbypassrls)",
        "ALTER ROLE livewell_api BYPASSRLS",
        "livewell_api",
    ),
    Rule(
        "PUBLIC has no right on any table, sequence or view",
        f"SELECT DISTINCT relname FROM pg_class, aclexplode(relacl) AS acl WHERE relnamespace = {OURS} AND "
        "acl.grantee = 0",
        "CREATE TABLE livewell.bad (); GRANT SELECT ON livewell.bad TO PUBLIC",
    ),
    Rule(
        "PUBLIC has no right on any column",
        "SELECT DISTINCT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid, "
        "aclexplode(attacl) AS acl "
        f"WHERE relnamespace = {OURS} AND acl.grantee = 0",
        "CREATE TABLE livewell.bad (x int); GRANT SELECT (x) ON livewell.bad TO PUBLIC",
    ),
    Rule(
        "PUBLIC has no right on the schema",
        "SELECT nspname FROM pg_namespace, aclexplode(nspacl) AS acl WHERE nspname = 'livewell' AND acl.grantee = 0",
        "GRANT USAGE ON SCHEMA livewell TO PUBLIC",
        "livewell",
    ),
    Rule(
        "functions made by livewell_owner are not executable by PUBLIC, even if their file forgets the REVOKE",
        "SELECT 'no default privilege' WHERE NOT EXISTS (SELECT FROM pg_default_acl WHERE defaclrole = "
        "'livewell_owner'::regrole "
        "AND defaclnamespace = 0 AND defaclobjtype = 'f' AND NOT EXISTS (SELECT FROM aclexplode(defaclacl) AS "
        "acl WHERE acl.grantee = 0))",
        "ALTER DEFAULT PRIVILEGES FOR ROLE livewell_owner GRANT EXECUTE ON FUNCTIONS TO PUBLIC",
        "no default privilege",
    ),
    Rule(
        "livewell_api has no table rights",
        f"SELECT relname FROM pg_class WHERE relnamespace = {OURS} AND relkind IN ('r', 'p', 'v', 'm') "
        "AND (has_table_privilege('livewell_api', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, "
        "TRIGGER') "
        "OR has_any_column_privilege('livewell_api', oid, 'SELECT, INSERT, UPDATE, REFERENCES'))",
        "CREATE TABLE livewell.bad (x int); GRANT SELECT (x) ON livewell.bad TO livewell_api",
    ),
    Rule(
        "every table with rows of users has row security, forced, and holds the owner's functions to one user",
        "SELECT DISTINCT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = "
        "'user_id' AND NOT attisdropped "
        f"WHERE relnamespace = {OURS} AND relkind IN ('r', 'p') AND NOT (relrowsecurity AND relforcerowsecurity "
        "AND EXISTS ("
        "SELECT FROM pg_policy WHERE polrelid = pg_class.oid AND polroles = ARRAY['livewell_owner'::regrole::oid] "
        "AND pg_get_expr(polqual, polrelid) = $$(user_id = NULLIF(current_setting('livewell.user_id'::text, "
        "true), ''::text))$$))",
        "CREATE TABLE livewell.bad (user_id text)",
    ),
    Rule(
        "every table of contacts has row security, forced, and holds the owner's functions to one tenant",
        "SELECT DISTINCT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = "
        "'tenant' AND NOT attisdropped "
        f"WHERE relnamespace = {OURS} AND relkind IN ('r', 'p') AND (relname LIKE 'contact%%' OR relname LIKE "
        "'identity%%') AND NOT (relrowsecurity AND relforcerowsecurity AND EXISTS ("
        "SELECT FROM pg_policy WHERE polrelid = pg_class.oid AND polroles = ARRAY['livewell_owner'::regrole::oid] "
        "AND pg_get_expr(polqual, polrelid) = $$(tenant = NULLIF(current_setting('livewell.tenant'::text, "
        "true), ''::text))$$))",
        "CREATE TABLE livewell.contact_bad (tenant text)",
        "contact_bad",
    ),
    Rule(
        "no policy lets livewell_api or PUBLIC see rows",
        f"SELECT relname FROM pg_policy JOIN pg_class ON pg_class.oid = polrelid WHERE relnamespace = {OURS} "
        "AND (0 = ANY (polroles) OR 'livewell_api'::regrole::oid = ANY (polroles))",
        "CREATE TABLE livewell.bad (x int); CREATE POLICY all_rows ON livewell.bad USING (true)",
    ),
    Rule(
        "operators and readers see neither ids of sessions nor who watches what",  # L4
        "SELECT role || ' ' || relname || '.' || attname FROM pg_class JOIN pg_attribute ON attrelid = "
        "pg_class.oid AND attnum > 0 AND NOT attisdropped, "
        f"unnest(ARRAY['livewell_operate', 'livewell_readonly']) AS role WHERE relnamespace = {OURS} AND "
        "relname IN ('viewer', 'viewer_session', 'subscription', 'session_share') "
        "AND has_column_privilege(role, pg_class.oid, attname, 'SELECT') AND relname || '.' || attname NOT IN "
        "('viewer_session.user_id', 'viewer_session.seen_at', 'subscription.data_type')",
        "GRANT SELECT ON livewell.subscription TO livewell_readonly",
        "livewell_readonly subscription.key",
    ),
    Rule(
        "every view reads with its caller's rights",
        f"SELECT relname FROM pg_class WHERE relnamespace = {OURS} AND relkind = 'v' AND NOT "
        f"coalesce(reloptions, '{{}}') @> ARRAY['security_invoker=true']",
        "CREATE VIEW livewell.bad AS SELECT 1 AS x",
    ),
    Rule(
        "every hot table has its fillfactor and its own autovacuum settings",
        "SELECT relname || ' lacks ' || wanted FROM pg_class CROSS JOIN unnest(ARRAY['fillfactor', "
        "'autovacuum_vacuum_scale_factor']) AS wanted "
        f"WHERE relnamespace = {OURS} AND relkind = 'r' AND relname = ANY (%(hot_tables)s) "
        "AND NOT EXISTS (SELECT FROM unnest(reloptions) AS option WHERE option LIKE wanted || '=%%')",
        "ALTER TABLE livewell.warning RESET (fillfactor)",
        "warning lacks fillfactor",
    ),
    Rule(
        "every role has its timeouts",
        f"SELECT role.name || ' lacks ' || wanted FROM (VALUES {ROLES}) AS role (name) "
        "CROSS JOIN unnest(ARRAY['statement_timeout', 'idle_in_transaction_session_timeout']) AS wanted "
        "WHERE NOT EXISTS (SELECT FROM pg_db_role_setting JOIN pg_roles ON pg_roles.oid = setrole CROSS JOIN "
        "unnest(setconfig) AS setting "
        "WHERE rolname = role.name AND setdatabase = 0 AND setting LIKE wanted || '=%%' AND split_part(setting, "
        "'=', 2) !~ '^0+[a-z]*$')",
        "ALTER ROLE livewell_hub SET statement_timeout = 0",
        "livewell_hub lacks statement_timeout",
    ),
    Rule(
        "every table and view has a comment",
        f"SELECT relname FROM pg_class WHERE relnamespace = {OURS} AND relkind IN ('r', 'p', 'v', 'm') AND NOT "
        "relispartition "
        "AND coalesce(obj_description(oid, 'pg_class'), '') = ''",
        "CREATE TABLE livewell.bad ()",
    ),
]


@pytest.fixture(scope="module")
def dsn(admin_dsn: str) -> Iterator[str]:
    with new_database(admin_dsn) as dsn:
        migrate(dsn)
        yield dsn


@pytest.fixture
def db(dsn: str) -> Iterator[Connection]:
    """A connection whose transaction is rolled back.

    What breaks a rule in one test is gone in the next.
    """
    with psycopg.connect(dsn) as connection:
        yield connection
        connection.rollback()


def offenders(db: Connection, rule: Rule) -> list[str]:
    parameters = {"definer_allowed": list(DEFINER_ALLOWED), "hot_tables": HOT_TABLES}
    return [str(row[0]) for row in db.execute(rule.offenders, parameters)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_rule_holds(db: Connection, rule: Rule) -> None:
    """For every object there is."""
    assert offenders(db, rule) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_rule_can_fail(db: Connection, rule: Rule) -> None:
    """A bad object is named."""
    for statement in rule.breaker.split("; "):
        db.execute(statement)

    assert rule.named in offenders(db, rule)


# ── types ──
# search_path = '' does not keep pg_temp out of the search for types, so a caller's domain could run
# its checks as the owner.

LOOSE_TYPE = re.compile(
    r"(?<!\.)\b(?:text|timestamptz|timetz|date|jsonb?|uuid|bytea|name|oid|inet|cidr|int[248]|float[48]|bool|bpchar|xid8?|reg[a-z]+"
    r"|int[48]range|tstzrange)\b(?=\s*(?:\[\]|:=|;|,|\)|$|NOT\b|DEFAULT\b|AS\b))",
    re.IGNORECASE | re.MULTILINE,
)


def loose_types(db: Connection) -> list[str]:
    """Name the functions that run with the owner's rights and name a type without its schema.

    A function runs with the owner's rights directly, or because one that does calls it.
    """
    found = db.execute(f"SELECT proname, prosecdef, prosrc FROM pg_proc WHERE pronamespace = {OURS}").fetchall()
    bodies = {name: code(body) for name, _, body in found}
    reached, todo = set(), [name for name, definer, _ in found if definer]
    while todo:
        name = todo.pop()
        reached.add(name)
        todo += [
            called
            for called in re.findall(r"livewell\.(\w+)\s*\(", bodies[name])
            if called in bodies and called not in reached
        ]
    return sorted(name for name in reached if LOOSE_TYPE.search(bodies[name]))


def test_functions_with_the_owners_rights_qualify_their_types(db: Connection) -> None:
    """See test_warn.py for what happens otherwise."""
    assert loose_types(db) == []


@pytest.mark.parametrize(
    "body", ["DECLARE x text; BEGIN END", "DECLARE x date := '2030-01-01'; BEGIN END", "BEGIN PERFORM (1::text); END"]
)
def test_a_loose_type_is_noticed(db: Connection, body: str) -> None:
    """In the function itself, and in one it calls."""
    make = "CREATE FUNCTION livewell.{}() RETURNS int LANGUAGE plpgsql {} AS $${}$$"
    db.execute(make.format("bad", "", body))
    db.execute(make.format("definer", "SECURITY DEFINER", "BEGIN PERFORM livewell.bad(); END"))

    assert loose_types(db) == ["bad"]


# ── clocks: these read source, as the catalog cannot tell a call from a word in a comment ──

OTHER_CLOCK = re.compile(
    r"\b(?:clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|now)\s*\("
    r"|\b(?:current_timestamp|current_date|current_time|localtimestamp|localtime)\b",
    re.IGNORECASE,
)
READS_CLOCK_INTO_A_VARIABLE = re.compile(
    r"\bv_\w+(?:\s+[\w.]+)?\s*:=(?:(?!\bSELECT\b|\bWHERE\b)[^;])*livewell\.now\(\)", re.IGNORECASE
)


def code(source: str) -> str:
    """Without comments and texts."""
    return re.sub(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", "", source, flags=re.DOTALL)


def other_clocks(db: Connection) -> list[str]:
    bodies = db.execute(
        f"SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = {OURS} AND prokind <> 'a'"
    )
    return [
        name for name, body in bodies if name != "now" and OTHER_CLOCK.search(code(body).replace("livewell.now()", ""))
    ]


def clock_misuse(source: str) -> str | None:
    """What is wrong with how a function file reads the clock."""
    text = code(source)
    for stopwatch in (
        "v_took := livewell.now() - v_now;",
        "v_begun timestamptz := livewell.now();",
        "v_begun pg_catalog.timestamptz := livewell.now();",
    ):
        text = re.sub(re.escape(stopwatch).replace("\\ ", r"\s+"), "", text)  # not the time of an event
    calls = text.count("livewell.now()")
    if calls > 1:
        return f"reads the clock {calls} times"
    if calls and not READS_CLOCK_INTO_A_VARIABLE.search(text):
        return "does not read the clock into a variable"
    return None


def test_no_function_reads_another_clock(db: Connection) -> None:
    """Contract of rule 1: a virtual clock reaches everything."""
    assert other_clocks(db) == []


@pytest.mark.parametrize(
    "clock",
    ["clock_timestamp()", "now()", "pg_catalog.now()", "current_timestamp", "CURRENT_DATE", "statement_timestamp ()"],
)
def test_another_clock_is_noticed(db: Connection, clock: str) -> None:
    """In any spelling."""
    db.execute(f"CREATE FUNCTION livewell.bad() RETURNS text LANGUAGE sql AS $$ SELECT {clock}::text $$")

    assert other_clocks(db) == ["bad"]


NOW = Path(livewell.__file__).parent / "db" / "sql" / "functions" / "now.sql"
FUNCTION_FILES = sorted(set(Path(livewell.__file__).parent.rglob("sql/functions/**/*.sql")) - {NOW})


@pytest.mark.parametrize("path", FUNCTION_FILES, ids=lambda path: f"{path.parts[-4]}/{path.stem}")
def test_a_function_reads_the_clock_once_into_a_variable(path: Path) -> None:
    """Never inside WHERE, where no index can serve it (T9)."""
    assert clock_misuse(path.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("v_now timestamptz := livewell.now(); -- livewell.now() once", None),
        ("SELECT 1", None),
        ("v_now := livewell.now(); v_then := livewell.now();", "reads the clock 2 times"),
        ("v_now := livewell.now(); v_took := livewell.now() - v_now;", None),
        ("v_begun     timestamptz := livewell.now(); v_now := livewell.now();", None),
        ("v_took := livewell.now() - v_now; SELECT livewell.now()", "does not read the clock into a variable"),
        ("v_minute timestamptz := date_trunc('minute', livewell.now());", None),
        ("DELETE FROM t WHERE at < livewell.now();", "does not read the clock into a variable"),
        ("v_n := (SELECT count(*) FROM t WHERE at < livewell.now());", "does not read the clock into a variable"),
    ],
)
def test_misuse_of_the_clock_is_noticed(source: str, expected: str | None) -> None:
    """Twice, or inside WHERE, also of a subquery."""
    assert clock_misuse(source) == expected
