"""Contract 13: no default time to live, in SQL or Python.

What a type does not say, nobody makes up; what is not positive is refused.

Broken once, and kept broken below: a column, a parameter and a Python default are each named.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import psycopg
import pytest

import livewell
from livewell.errors import InvalidDefinition
from tests.support.refresh_sql import RefreshSession
from tests.support.refresh_types import QUOTE, type_of
from tests.support.registry_sql import RegistrySession
from tests.support.source import parse

SOURCES = sorted(Path(livewell.__file__).parent.glob("refresh/**/*.py"))
SQL_OFFENDERS = """
SELECT c.relname || '.' || a.attname FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'livewell'::regnamespace AND a.attname LIKE '%ttl%'
UNION ALL
SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ')' FROM pg_proc p
WHERE p.pronamespace = 'livewell'::regnamespace AND pg_get_function_arguments(p.oid) ~ 'ttl[a-z_]* [a-z ]+ DEFAULT (?!NULL)'
"""


def is_ttl(name: str) -> bool:
    return re.search(r"(^|_)(ttls?|time_to_live)(_|$)", name.lower()) is not None


def python_offenders(text: str) -> list[str]:
    """Names with a default: parameters, dataclass and model fields, constants.

    None says that there is none.
    """
    found: list[str] = []
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            given = node.args
            pairs = [
                *zip(reversed(given.posonlyargs + given.args), reversed(given.defaults), strict=False),
                *zip(given.kwonlyargs, given.kw_defaults, strict=True),
            ]
            found += [arg.arg for arg, default in pairs if is_ttl(arg.arg) and is_number(default)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_ttl(node.target.id):
            found += [node.target.id] if is_number(node.value) else []
        elif isinstance(node, ast.Assign):
            found += [t.id for t in node.targets if isinstance(t, ast.Name) and is_ttl(t.id) and is_number(node.value)]
    return found


def is_number(node: ast.expr | None) -> bool:
    """A number or a text like "1m", also inside timedelta(…) or Field(…)."""
    return node is not None and any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, int | float | str)
        and not isinstance(part.value, bool)
        for part in ast.walk(node)
    )


def test_no_column_and_no_parameter_has_a_default(refresh: RefreshSession) -> None:
    """In the whole schema."""
    assert refresh.column(SQL_OFFENDERS) == []


@pytest.mark.parametrize(
    "breaker",
    [
        "ALTER TABLE livewell.data_type ALTER ttl SET DEFAULT '1 hour'",
        "ALTER TABLE livewell.ledger ALTER ttl_override SET DEFAULT '1 hour'",
        "CREATE FUNCTION livewell.bad(p_ttl interval DEFAULT '1 hour') RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ],
)
def test_a_default_in_sql_is_noticed(refresh: RefreshSession, breaker: str) -> None:
    """Broken on purpose."""
    with refresh.connection.transaction(force_rollback=True):
        refresh.rows(breaker)

        assert len(refresh.column(SQL_OFFENDERS)) == 1


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_python_of_the_engine_has_a_default(path: Path) -> None:
    """Parameters, fields and constants."""
    assert python_offenders(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(ttl=60): ...",
        "async def f(*, ttl_seconds: float = 60.0): ...",
        "class A:\n    ttl: timedelta = timedelta(hours=1)",
        "DEFAULT_TTL = '1h'",
        "class A:\n    ttl_seconds: int = Field(default=60)",
    ],
)
def test_a_default_in_python_is_noticed(source: str) -> None:
    """Broken on purpose."""
    assert len(python_offenders(source)) == 1


@pytest.mark.parametrize("ttl", ["0", "-1 second", None])
def test_the_registry_refuses_what_is_not_positive(refresh: RefreshSession, ttl: str | None) -> None:
    """By the table itself."""
    with pytest.raises(psycopg.errors.IntegrityError):
        refresh.type("odd", ttl=ttl)


@pytest.mark.parametrize("ttl", ["0", "-1 second"])
def test_an_override_that_is_not_positive_is_refused(refresh: RefreshSession, ttl: str) -> None:
    """By the table itself."""
    with pytest.raises(psycopg.errors.CheckViolation):
        refresh.keep("A", ttl_override=ttl)


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
