"""F-F2: search_path hijack.

A session owns look-alikes of everything our functions name, puts them first, and calls every
function.

Look-alikes: temporary views of every table and catalog our functions mention, temporary sequences,
functions of every name they call (in pg_temp and in a schema that stands before pg_catalog),
operators, and domains of every type name. Each one does what the real one does and writes down that
it was used, and as whom. So a function that is caught still answers right, and is caught all the
same.

A table, sequence, function or operator of the caller's must never be used. A type is different:
Postgres looks into pg_temp first for types even with search_path = '', so an unqualified `text` is
the caller's domain and its CHECK runs. In an invoker function that is the caller hurting himself;
in a definer function it would be his code with our rights, and that must not be.

Can it fail? Yes: ALTER FUNCTION livewell.reserve_job_ids RESET search_path is caught (functions and
operators), ALTER FUNCTION livewell.promote_jobs SECURITY DEFINER is caught (types, as somebody
else), and a function that reads `job` without its schema is caught (relation) even with search_path
= ''.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-F2"
TITLE = "search_path hijack of every function"

ROLES = ("livewell_api", "livewell_readonly", "livewell_operate", "livewell_worker", "livewell_hub")
HIJACKED_PATH: LiteralString = "SET search_path = evil, pg_temp, livewell, public, pg_catalog"

# CHECKs and bodies name everything in full: they run inside the hijacked session.
_TRAP = """
CREATE SCHEMA evil;
CREATE TABLE evil.caught (what pg_catalog.text, as_whom pg_catalog.text);
CREATE FUNCTION evil.touch(p_what pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE plpgsql AS
    'BEGIN INSERT INTO evil.caught VALUES ($1, current_user); RETURN true; END';
GRANT USAGE ON SCHEMA evil TO PUBLIC;
GRANT ALL ON evil.caught TO PUBLIC;
"""
_SEQUENCES = (
    "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'livewell'::regnamespace AND c.relkind = 'S' "
    "ORDER BY 1"
)
# Words of our functions' bodies that are names of relations, functions or types somewhere.
_WORDS = """
CREATE TEMP TABLE livewell_words AS
SELECT DISTINCT lower(m[1])::name AS word
FROM pg_proc p CROSS JOIN LATERAL regexp_matches(p.prosrc, '([a-zA-Z_][a-zA-Z0-9_]*)', 'g') AS m WHERE p.pronamespace = 'livewell'::regnamespace
"""
_RELATIONS = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
  AND (n.nspname = 'livewell' OR n.nspname = 'pg_catalog' AND c.relname IN (SELECT word FROM livewell_words))
ORDER BY 1 DESC, 2
"""
_FUNCTIONS = """
SELECT format('%I.%I', n.nspname, p.proname), p.proname::text, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid), p.proretset,
       (SELECT string_agg('$' || i, ', ' ORDER BY i) FROM generate_series(1, p.pronargs) AS i)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname IN ('pg_catalog', 'livewell') AND p.prokind = 'f' AND p.provariadic = 0 AND p.proname IN (SELECT word FROM livewell_words)
  AND p.proname NOT LIKE 'pg\\_terminate%%' AND p.prorettype <> 'trigger'::regtype
"""
_TYPES = """
SELECT format('%I.%I', n.nspname, t.typname), t.typname::text FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype IN ('b', 'e') AND t.typcategory <> 'A'
  AND (n.nspname = 'livewell' OR n.nspname = 'pg_catalog' AND t.typname IN (SELECT word FROM livewell_words UNION VALUES ('int8'), ('int4'), ('int2'), ('bool')))
"""
_OPERATORS = """
SELECT o.oprname::text, format_type(o.oprleft, NULL), format_type(o.oprright, NULL), format_type(o.oprresult, NULL)
FROM pg_operator o
WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprname IN ('=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '||', '%', '&&')
  AND o.oprleft = ANY (ARRAY['int8', 'int4', 'int2', 'text', 'timestamptz', 'interval', 'float8', 'date', 'jsonb', 'int8[]', 'text[]']::regtype[])
  AND o.oprright = ANY (ARRAY['int8', 'int4', 'int2', 'text', 'timestamptz', 'interval', 'float8', 'date', 'jsonb', 'int8[]', 'text[]']::regtype[])
"""
_OURS = """
SELECT p.oid::bigint, p.proname::text, p.pronargs::integer, p.prosecdef, pg_get_userbyid(p.proowner)::text, p.proconfig
FROM pg_proc p WHERE p.pronamespace = 'livewell'::regnamespace AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype ORDER BY p.proname
"""


@dataclass(frozen=True, slots=True)
class Ours:
    """One function of ours and how it is called here."""

    oid: int
    name: str
    arguments: tuple[Any, ...]
    definer: bool


async def run(scale: Scale) -> Findings:
    """Call every function from three sessions, and compare.

    One session is clean, one has look-alikes of all but types, one has look-alikes of all.
    """
    findings = Findings()
    async with open_fleet(scale) as fleet:
        given = await _furnish(fleet)
        functions = list(_functions(fleet, given, findings))
        fleet.rows(_TRAP)
        look_alikes = 0
        hijacked: set[str] = set()
        harmless: set[str] = set()
        for types in (False, True):
            with (
                psycopg.connect(fleet.dsn, autocommit=True) as clean,
                psycopg.connect(fleet.dsn, autocommit=True) as session,
            ):
                look_alikes = _set_the_trap(session, types=types)
                findings.check(
                    _is_sharp(session, types=types), "the trap misses an unguarded call: this scenario proves nothing"
                )
                for function in functions:
                    fate = _compare(fleet, clean, session, function, findings, types=types)
                    hijacked |= {function.name} if fate == "hijacked" else set()
                    harmless |= {function.name} if fate == "harmless" else set()
        findings.fired = len(functions)
        findings.figures = {
            "functions": len(functions),
            "definer_functions": sum(function.definer for function in functions),
            "called_with_real_arguments": sum(function.name in given for function in functions),
            "look_alikes": look_alikes,
            "hijacked": len(hijacked),
            "invokers_that_use_a_type_of_the_caller": len(harmless),
        }
    return findings


async def _furnish(fleet: Fleet) -> dict[str, tuple[Any, ...]]:
    """Something of everything in the database, and arguments that reach deep into each function."""
    await fleet.enqueue("plain", 8)
    worker = int(fleet.value("SELECT livewell.register_worker('w', '0', ARRAY['work'], ARRAY['plain'], 4, 60)"))
    claimed = fleet.rows("SELECT id, fence FROM livewell.claim_jobs(%s, ARRAY['work'], 5)", (worker,))
    (dead, dead_fence), (done, done_fence), *held = claimed
    refused = f'[{{"id": {dead}, "fence": {dead_fence}, "outcome": "refused", "error": "no"}}]'
    fleet.rows(
        "SELECT * FROM livewell.finish_jobs(%s, %s::bigint[], %s::bigint[], %s::jsonb)",
        (worker, [done], [done_fence], refused),
    )
    later = '[{"id": 999998, "queue": "work", "kind": "plain", "payload": {"key": 1}, "delay_seconds": 3600}]'
    fleet.rows("SELECT livewell.enqueue_jobs(%s)", (later,))
    gone = int(fleet.value("SELECT livewell.register_worker('x', '0', ARRAY['work'], ARRAY['plain'], 4, 60)"))
    fleet.rows("UPDATE livewell.worker SET expires_at = '-infinity' WHERE id = %s", (gone,))
    fleet.rows(
        "UPDATE livewell.worker SET steady_since = '-infinity', expires_at = 'infinity' WHERE id = %s", (worker,)
    )
    fleet.rows("SELECT livewell.warn('here', 'what', 'sample')")
    held_ids, fences = [job for job, _ in held], [fence for _, fence in held]
    retry = f'[{{"id": {held_ids[0]}, "fence": {fences[0]}, "outcome": "retry", "error": "x"}}]'
    new = '[{"id": 999999, "queue": "work", "kind": "plain", "payload": {"key": 1}, "unique_key": "k"}]'
    return {
        "add_stats": (["work"], ["plain"], ["succeeded"], [1], [5]),
        "cancel_job": (held_ids[0],),
        "claim_jobs": (worker, ["work"], 2, True),
        "declare_queue": ("new", 3, 1.0, 2.0),
        "drop_event_day": (7, 14),
        "drop_history_day": (7,),
        "edit_dead": (dead, '{"key": 5}'),
        "enqueue_jobs": (new, True),
        "ensure_event_days": (20,),
        "ensure_history_days": (20,),
        "exchange_jobs": (worker, held_ids[1:], fences[1:], retry, ["work"], 2, False),
        "finish_jobs": (worker, held_ids[1:], fences[1:], retry),
        "hasten_job": (999998,),
        "list_dead": ("work", None, 0, 10),
        "list_jobs": ("work", None, 0, 10),
        "list_queues": (),
        "list_workers": (),
        "maintain": (worker, 1.0, 1.0, 10),
        "now": (),
        "pause_queue": ("work", True),
        "promote_jobs": (10,),
        "prune_queue": (30, 30, 10),
        "prune_warnings": (1, 10),
        "reconcile_jobs": (worker, [], max(fences)),
        "recover_jobs": (worker, 10, 1.0),
        "redact": ("password=x",),
        "redrive_dead": ([dead], None, None, 10),
        "register_worker": ("w", "0", ["work"], ["plain"], 4, 60.0),
        "release_worker": (worker,),
        "renew_worker": (worker, held_ids, fences, [1.0] * len(fences)),
        "report_progress": (worker, held_ids, fences, [50] * len(fences), ["half"] * len(fences)),
        "reserve_job_ids": (3,),
        "settle_jobs": (held_ids[:1], ["lost"], ["lost"], ["x"], [1.0]),
        "show_job": (dead,),
        "warn": ("here", "what", "sample"),
    }


def _functions(fleet: Fleet, given: dict[str, tuple[Any, ...]], findings: Findings) -> Iterator[Ours]:
    """Every function but triggers.

    One that is new here is called with NULLs until somebody gives it arguments in _furnish.
    """
    for oid, name, count, definer, owner, config in fleet.rows(_OURS):
        findings.check('search_path=""' in (config or []), f"livewell.{name} does not fix its search_path")
        findings.check(not definer or owner == "livewell_owner", f"livewell.{name} runs with the rights of {owner}")
        yield Ours(oid, name, given.get(name, (None,) * count), definer)


def _set_the_trap(session: psycopg.Connection, *, types: bool) -> int:
    """Make the look-alikes; answers how many there are.

    All lists are read first: once they exist, they would catch us too.
    """
    session.execute(_WORDS)
    relations, sequences, functions, operators, type_names = (
        session.execute(query).fetchall() for query in (_RELATIONS, _SEQUENCES, _FUNCTIONS, _OPERATORS, _TYPES)
    )
    made = 0
    for original, name, arguments, result, many, numbers in functions:
        call = (
            f"RETURN QUERY SELECT * FROM {original}({numbers or ''})" if many else f"RETURN {original}({numbers or ''})"
        )
        if result == "void":
            call = f"PERFORM {original}({numbers or ''})"
        body = f"BEGIN PERFORM evil.touch('function {name}'); {call}; END"
        for schema in ("evil", "pg_temp"):
            text = f"CREATE OR REPLACE FUNCTION {{}}({arguments}) RETURNS {result} LANGUAGE plpgsql AS {{}}"
            made += _make(session, text, sql.Identifier(schema, name), sql.Literal(body))
    for number, (name, left, right, result) in enumerate(operators):
        body = f"BEGIN PERFORM evil.touch('operator {name}'); RETURN $1 OPERATOR(pg_catalog.{name}) $2; END"
        text = (
            f"CREATE OR REPLACE FUNCTION evil.operator_{number}({left}, {right}) RETURNS {result} LANGUAGE "
            f"plpgsql AS {{}}"
        )
        _make(session, text, sql.Literal(body))
        text = f"CREATE OPERATOR evil.{name} (FUNCTION = evil.operator_{number}, LEFTARG = {left}, RIGHTARG = {right})"
        made += _make(session, text)
    for schema, name in relations:
        text = "CREATE TEMP VIEW {} AS SELECT * FROM {} WHERE (SELECT evil.touch({}))"
        made += _make(
            session, text, sql.Identifier(name), sql.Identifier(schema, name), sql.Literal(f"relation {name}")
        )
        _make(session, "GRANT ALL ON pg_temp.{} TO PUBLIC", sql.Identifier(name))
    for (name,) in sequences:
        made += _make(session, "CREATE TEMP SEQUENCE {} START 77777777", sql.Identifier(name))
        _make(session, "GRANT ALL ON SEQUENCE pg_temp.{} TO PUBLIC", sql.Identifier(name))
    for original, name in type_names if types else ():
        for schema in ("evil", "pg_temp"):
            text = f"CREATE DOMAIN {{}} AS {original} CHECK (evil.touch({{}}))"
            made += _make(session, text, sql.Identifier(schema, name), sql.Literal(f"type {name}"))
    session.execute("DELETE FROM evil.caught")
    return made


def _make(session: psycopg.Connection, text: str, *parts: sql.Composable) -> bool:
    """Make one; some cannot be imitated (reserved, pseudo-types), and that is all right."""
    try:
        session.execute(sql.SQL(text).format(*parts))
    except psycopg.Error:
        return False
    return True


def _is_sharp(session: psycopg.Connection, *, types: bool) -> bool:
    """An unguarded function must be caught with a relation, a function, an operator and a type."""
    with _rolled_back(session):
        session.execute(HIJACKED_PATH)
        session.execute(
            "DO 'DECLARE v text := left(''x'', 1); BEGIN PERFORM FROM job; PERFORM FROM livewell.job j WHERE "
            "j.id = 1::pg_catalog.int8; END'"
        )
        caught = {str(row[0]) for row in session.execute("SELECT what FROM evil.caught").fetchall()}
    return caught >= {"relation job", "function left", "operator ="} | ({"type text"} if types else set())


def _compare(
    fleet: Fleet,
    clean: psycopg.Connection,
    session: psycopg.Connection,
    function: Ours,
    findings: Findings,
    *,
    types: bool,
) -> str:
    """Call it from both sessions: 'untouched', 'hijacked', or 'harmless'.

    It used a type of the caller's with the caller's rights.
    """
    role = next((name for name in ROLES if _may(fleet, name, function)), None)
    right, _ = _call(fleet, clean, function, role)
    answer, caught = _call(fleet, session, function, role, hijack=True)
    me = role or str(fleet.value("SELECT current_user::text"))
    foreign = sorted({f"{what} as {whom}" for what, whom in caught if whom != me or not what.startswith("type ")})
    findings.check(not foreign, f"livewell.{function.name} used the caller's {', '.join(foreign[:4])}")
    if types and not function.definer and not foreign:
        return "harmless" if caught or answer != right else "untouched"
    findings.check(
        answer == right, f"livewell.{function.name} answered {answer} in a hijacked session, {right} is right"[:600]
    )
    return "hijacked" if foreign or answer != right else "untouched"


def _may(fleet: Fleet, role: str, function: Ours) -> bool:
    return bool(fleet.value("SELECT has_function_privilege(%s, %s::oid, 'EXECUTE')", (role, function.oid)))


def _call(
    fleet: Fleet, session: psycopg.Connection, function: Ours, role: str | None, *, hijack: bool = False
) -> tuple[object, list[tuple[str, str]]]:
    """One call that leaves no trace.

    The answer without what differs from call to call, and what it was caught with.
    """
    for (name,) in fleet.rows(_SEQUENCES):
        fleet.rows(
            f"SELECT setval(seqrelid::regclass, least(1000000, seqmax)) FROM pg_sequence "
            f"WHERE seqrelid = 'livewell.{name}'::regclass"
        )
    places = sql.SQL(", ").join(sql.Placeholder() * len(function.arguments))
    statement = sql.SQL("SELECT * FROM {}({})").format(sql.Identifier("livewell", function.name), places)
    answer: object
    caught: list[tuple[str, str]] = []
    with _rolled_back(session):
        if hijack:
            session.execute(HIJACKED_PATH)
        if role is not None:
            session.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
        try:
            with session.transaction():
                answer = [tuple(map(_plain, row)) for row in session.execute(statement, function.arguments).fetchall()]
                if hijack:
                    caught = session.execute("SELECT DISTINCT what, as_whom FROM evil.caught").fetchall()
        except psycopg.Error as error:
            answer = f"{error.sqlstate} {error.diag.message_primary}"
        if hijack:
            for (name,) in fleet.rows(_SEQUENCES):
                used = session.execute(
                    sql.SQL("SELECT is_called FROM pg_temp.{}").format(sql.Identifier(name))
                ).fetchone()
                caught += [(f"sequence {name}", "")] if used and used[0] else []
    return answer, caught


@contextmanager
def _rolled_back(session: psycopg.Connection) -> Iterator[None]:
    session.execute("BEGIN")
    try:
        yield
    finally:
        session.execute("ROLLBACK")
        session.execute("RESET search_path")


_MOVES = ("at", "_ms", "_seconds")


def _plain(value: object) -> object:
    """Instants and durations differ from call to call, their presence does not.

    In a document those are its fields of these names.
    """
    if isinstance(value, dict):
        return {
            name: "moves" if name.endswith(_MOVES) and one is not None else _plain(one) for name, one in value.items()
        }
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return type(value).__name__ if isinstance(value, (datetime, float)) else value
