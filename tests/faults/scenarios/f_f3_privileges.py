"""F-F3: who may do what, compared with the checked-in map tests/faults/privileges.txt.

Every role × every schema, table, sequence, function and type.

Two views that must agree: the map against the catalog (rights given to a role, and to PUBLIC), and
the map against reality (each role tries to read and write each table and asks for each function).
PUBLIC has nothing. And the map is enough: a worker with livewell_worker's rights alone does its
work.

After a wanted change of grants write the map anew and read its diff: .venv/bin/python -m
tests.faults.scenarios.f_f3_privileges

Can it fail? Yes: GRANT SELECT ON livewell.job TO PUBLIC in the scratch database is reported, by
both views.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from livewell.db import embedded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-F3"
TITLE = "The privilege map: every role and every object"

MAP = Path(__file__).parents[1] / "privileges.txt"
ROLES = ("livewell_api", "livewell_hub", "livewell_operate", "livewell_readonly", "livewell_worker")
TRIED = ("SELECT", "INSERT", "UPDATE", "DELETE")

# A right the owner has is not listed. Without an ACL the built-in default holds, and for functions
# and types that is "PUBLIC may".
_RIGHTS = """
WITH object AS (
    SELECT 'schema' AS kind, n.nspname::text AS name, coalesce(n.nspacl, acldefault('n', n.nspowner)) AS acl, n.nspowner AS owner
    FROM pg_namespace n WHERE n.nspname = 'livewell'
    UNION ALL
    SELECT CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END, c.relname::text,
           coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)), c.relowner
    FROM pg_class c WHERE c.relnamespace = 'livewell'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL
    SELECT 'column', c.relname || '.' || a.attname, a.attacl, c.relowner
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'livewell'::regnamespace AND a.attacl IS NOT NULL
    UNION ALL
    SELECT 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner
    FROM pg_proc p WHERE p.pronamespace = 'livewell'::regnamespace
    UNION ALL
    SELECT 'type', t.typname::text, coalesce(t.typacl, acldefault('T', t.typowner)), t.typowner
    FROM pg_type t WHERE t.typnamespace = 'livewell'::regnamespace AND t.typtype IN ('e', 'd', 'r')
)
SELECT o.kind, o.name, coalesce(r.rolname, 'PUBLIC')::text,
       string_agg(a.privilege_type || CASE WHEN a.is_grantable THEN '*' ELSE '' END, ' ' ORDER BY a.privilege_type)
FROM object o CROSS JOIN LATERAL aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE a.grantee <> o.owner
GROUP BY 1, 2, 3
"""
_OBJECTS = """
SELECT 'table', c.relname::text, NULL::oid FROM pg_class c
WHERE c.relnamespace = 'livewell'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL
SELECT 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', p.oid FROM pg_proc p WHERE p.pronamespace = 'livewell'::regnamespace
"""
_DAY = re.compile(r"^(job_history|event|event_sent|inbox)_[0-9_]+$")


async def run(scale: Scale) -> Findings:
    """Compare the map with the catalog, then try."""
    findings = Findings()
    async with open_fleet(scale) as fleet:
        wanted, found = set(MAP.read_text().splitlines()), _catalog(fleet)
        for line in sorted(found - wanted):
            findings.check(False, f"a right that is not in {MAP.name}: {line}")
        for line in sorted(wanted - found):
            findings.check(False, f"a right of {MAP.name} that nobody has: {line}")
        public = [line for line in found if line.startswith("PUBLIC")]
        findings.check(not public, f"PUBLIC has rights: {public}")
        tried, surprises = _try(fleet, wanted)
        for surprise in surprises:
            findings.check(False, surprise)
        took = await _work_as(fleet, findings)
        findings.fired = tried
        findings.figures = {
            "worked_as_livewell_worker_seconds": took,
            "rights": len(found),
            "differences": len(found ^ wanted),
            "tried": tried,
            "surprises": len(surprises),
            "rights_of_public": len(public),
        }
    return findings


async def _work_as(fleet: Fleet, findings: Findings) -> float | None:
    """The map is not only narrow, it is enough.

    A worker whose login has the rights of livewell_worker and no other works and stops.
    """
    login, secret = f"fleet_{secrets.token_hex(6)}", secrets.token_hex(16)
    fleet.rows(f"CREATE ROLE {login} LOGIN PASSWORD '{secret}' IN ROLE livewell_worker")
    try:
        fleet.rows(f"GRANT INSERT ON public.effect TO {login}")
        address = make_conninfo("", **{**conninfo_to_dict(fleet.dsn), "user": login, "password": secret})
        [worker] = await fleet.workers(1, database_url=address)
        await fleet.enqueue("effect", 20)
        await fleet.enqueue("plain", 20)
        refused = await fleet.enqueue("hog", 1, megabytes=10**9)  # its MemoryError makes it a dead letter
        took = await fleet.converge(findings, 20)
        fleet.audit(findings, dead=refused)
        worker.terminate()
        findings.check(await worker.ended() == 0, "the worker with the rights of livewell_worker did not stop well")
        complaints = [line for line in worker.child.lines() if "permission denied" in line]
        complaints += [
            str(row)
            for row in fleet.rows(
                "SELECT what, sample FROM livewell.warning WHERE strpos(sample, 'permission denied') > 0"
            )
        ]
        findings.check(not complaints, f"livewell_worker lacks a right: {complaints[:3]}")
    finally:
        fleet.rows(f"DROP OWNED BY {login}")
        fleet.rows(f"DROP ROLE {login}")
    return None if took is None else round(took, 2)


def _catalog(fleet: Fleet) -> set[str]:
    """One line per role and object that has any right; days of the history count as one object."""
    return {f"{role} {kind} {_object(name)}: {rights}" for kind, name, role, rights in fleet.rows(_RIGHTS)}


def _object(name: str) -> str:
    return _DAY.sub(r"\1_<day>", name)


def _try(fleet: Fleet, wanted: Iterable[str]) -> tuple[int, list[str]]:
    """Let each role use each table and ask for each function; what the map says must happen."""
    may = {line.partition(":")[0]: line.partition(": ")[2].split() for line in wanted}
    objects = fleet.rows(_OBJECTS)
    tried, surprises = 0, []
    with psycopg.connect(fleet.dsn, autocommit=True) as connection:
        for role in ROLES:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
            for kind, name, oid in objects:
                rights = may.get(f"{role} {kind} {_object(name)}", [])
                for right, allowed in _attempts(connection, kind, name, oid):
                    tried += 1
                    if allowed != (right in rights):
                        surprises.append(f"{role} {'can' if allowed else 'cannot'} {right} {kind} {name}")
            connection.execute("RESET ROLE")
    return tried, surprises


def _attempts(connection: psycopg.Connection, kind: str, name: str, oid: int | None) -> Iterator[tuple[str, bool]]:
    if kind == "function":
        row = connection.execute("SELECT has_function_privilege(%s, 'EXECUTE')", (oid,)).fetchone()
        yield "EXECUTE", bool(row and row[0])
        return
    for right in TRIED:
        yield right, _can(connection, right, name)


def _can(connection: psycopg.Connection, right: str, table: str) -> bool:
    """EXPLAIN checks the rights of the statement like running it, and changes nothing.

    A view of more than one table refuses every write, before rights are looked at.
    """
    texts = {
        "SELECT": "EXPLAIN SELECT * FROM livewell.{}",
        "INSERT": "EXPLAIN INSERT INTO livewell.{} DEFAULT VALUES",
        "UPDATE": "EXPLAIN UPDATE livewell.{} SET {} = DEFAULT",
        "DELETE": "EXPLAIN DELETE FROM livewell.{}",
    }
    column = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = (SELECT c.oid FROM pg_class c WHERE c.relname = %s "
        "AND c.relnamespace ="
        " (SELECT n.oid FROM pg_namespace n WHERE n.nspname = 'livewell')) AND attnum > 0 AND attidentity = '' LIMIT 1",
        (table,),
    ).fetchone()
    names = [sql.Identifier(table), sql.Identifier(str(column[0]) if column else "id")]
    try:
        connection.execute(sql.SQL(texts[right]).format(*names[: texts[right].count("{}")]))
    except psycopg.errors.InsufficientPrivilege:
        return False
    except psycopg.errors.ObjectNotInPrerequisiteState:
        if right == "SELECT":
            raise
        return False
    return True


async def _installed(scale: Scale) -> set[str]:
    async with open_fleet(scale) as fleet:
        return _catalog(fleet)


def _write() -> None:
    """Write the map of the schema as it is now."""
    folder = Path(tempfile.mkdtemp(prefix="livewell-privileges-"))
    folder.chmod(0o755)
    server = embedded.start(folder / "server", parameters={"fsync": "off"})
    try:
        found = asyncio.run(_installed(Scale(full=False, seed=0, server=server.dsn, folder=folder)))
        MAP.write_text("".join(f"{line}\n" for line in sorted(found)))
    finally:
        embedded.stop(folder / "server", mode="immediate")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _write()
