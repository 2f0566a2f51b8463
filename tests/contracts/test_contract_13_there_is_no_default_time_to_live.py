"""Contract 13: no default TTL. Neither SQL nor Python has one: a type states its time to live, or there is no type.

Broken once, and kept broken below: a column default, a parameter default, a constant and a .get() with a default are each noticed.
"""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import psycopg
import pytest

import livewell
from livewell.errors import InvalidDefinition
from livewell.refresh.definition import TypeDefinition
from tests.support.refresh_types import QUOTE, type_of
from tests.support.registry_sql import RegistrySession

SOURCE = Path(livewell.__file__).parent

_DEFAULTS = """
SELECT c.relname || '.' || a.attname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'livewell'::regnamespace AND a.attname ~ 'ttl' AND a.atthasdef
UNION ALL
SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ')' FROM pg_proc p
WHERE p.pronamespace = 'livewell'::regnamespace AND pg_get_function_arguments(p.oid) ~ 'ttl [a-z ]+ DEFAULT'
UNION ALL
SELECT p.proname::text FROM pg_proc p
WHERE p.pronamespace = 'livewell'::regnamespace AND regexp_replace(p.prosrc, '--[^\\n]*', '', 'g') ~* 'coalesce\\([^()]*ttl[^()]*,\\s*(interval\\s*)?''[^'']*''\\s*(::interval)?\\s*\\)'
"""


def defaults_in_sql(session: RegistrySession) -> list[str]:
    return session.column(_DEFAULTS.replace("%", "%%"))


def defaults_in_python(sources: dict[str, str]) -> list[str]:
    """Parameters, constants, fields and look-ups that give a time to live nobody stated."""
    found = []
    for name, text in sources.items():
        found += [
            f"{name}:{node.lineno}"
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.stmt | ast.expr) and _gives_one(node)
        ]
    return found


def _gives_one(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        positional = [*node.args.posonlyargs, *node.args.args]
        pairs = [
            *zip(positional[len(positional) - len(node.args.defaults) :], node.args.defaults, strict=True),
            *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
        ]
        return any(
            "ttl" in argument.arg.lower() and default is not None and not _none(default) for argument, default in pairs
        )
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        return (
            any("ttl" in name.lower() for name in names)
            and isinstance(node.value, ast.Constant)
            and not _none(node.value)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        first = node.args[0] if node.args else None
        asks = isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.lower().endswith("ttl")
        default = next(
            (word.value for word in node.keywords if word.arg == "default"),
            node.args[1] if len(node.args) > 1 else None,
        )
        return (
            asks
            and node.func.attr in ("get", "pop", "span", "text", "take")
            and default is not None
            and not _none(default)
        )
    return False


def _none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def code() -> dict[str, str]:
    paths = [
        *(SOURCE / "refresh").rglob("*.py"),
        SOURCE / "app.py",
        SOURCE / "settings.py",
        *(SOURCE / "cli").glob("types.py"),
    ]
    return {str(path.relative_to(SOURCE)): path.read_text() for path in paths}


def test_sql_has_no_default(livewell_dsn: str) -> None:
    """No column, no parameter, no coalesce."""
    with RegistrySession(livewell_dsn) as session:
        assert defaults_in_sql(session) == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE livewell.data_type ALTER COLUMN ttl SET DEFAULT '1 minute'",
        "ALTER TABLE livewell.ledger ALTER COLUMN ttl_override SET DEFAULT '1 minute'",
        "CREATE FUNCTION livewell.bad(p_ttl interval DEFAULT '1 minute') RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION livewell.bad() RETURNS interval LANGUAGE sql AS $$ SELECT coalesce(t.ttl, interval '5 min') FROM livewell.data_type t $$",
    ],
)
def test_a_default_in_sql_is_noticed(livewell_dsn: str, statement: str) -> None:
    """Broken on purpose."""
    with RegistrySession(livewell_dsn) as session:
        session.rows(statement)

        assert len(defaults_in_sql(session)) == 1


def test_python_has_no_default() -> None:
    """Nor has the definition's own field."""
    assert defaults_in_python(code()) == []
    fields = {field.name: field for field in dataclasses.fields(TypeDefinition)}
    assert fields["ttl_seconds"].default is dataclasses.MISSING
    assert fields["ttl_seconds"].default_factory is dataclasses.MISSING


@pytest.mark.parametrize(
    "text",
    [
        "DEFAULT_TTL = 60",
        "def f(*, ttl_seconds: float = 60.0): ...",
        "def f(ttl='1m'): ...",
        "ttl = row.get('ttl', '1m')",
        "table.span('ttl', default='1m')",
        "class T:\n    ttl_seconds: float = 60.0",
    ],
)
def test_a_default_in_python_is_noticed(text: str) -> None:
    """Broken on purpose."""
    assert defaults_in_python({"bad.py": text}) != []


@pytest.mark.parametrize("name", ["ttl", "negative_ttl"])
def test_a_type_without_one_is_no_type(livewell_dsn: str, name: str) -> None:
    """Refused when the file is read, and by the table for whoever goes around it."""
    with pytest.raises(InvalidDefinition, match=f'"{name}" is missing'):
        type_of(QUOTE, type={name: None})
    with RegistrySession(livewell_dsn) as session:
        session.clear()
        session.apply_upstream()
        with pytest.raises(psycopg.errors.NotNullViolation):
            session.apply(type_of(QUOTE), **{name: None})
