"""Contract 5: strict schema and sanity on every answer.

There is one validate step, and no rows but those of its Value reach the store.

Broken once, and kept broken below: a missing field taken as NULL, a text taken as a number, bounds
not looked at; each is noticed. And where Python would let a value through, the table still refuses
it: its CHECKs come from the same definition.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import livewell
from livewell.apps.market import type_files
from livewell.refresh.definition.document import read_file
from livewell.refresh.definition.model import Column, TypeDefinition
from livewell.refresh.result import Failure, Missing, Value
from livewell.refresh.validate import column_value as cell
from livewell.refresh.validate import key_rows
from livewell.refresh.validate.answer import validate
from tests.support.refresh_types import NOW
from tests.support.registry_sql import RegistrySession

SOURCE = Path(livewell.__file__).parent
MARKET = [
    found for path in type_files() if isinstance(found := read_file(path.read_bytes(), path.name), TypeDefinition)
]
WRONG: dict[str, list[Any]] = {
    "text": [5, True, [], {}],
    "numeric": ["1", True, [], {}, ""],
    "bigint": ["1", True, 1.5, [], ""],
    "integer": ["1", True, 1.5, [], ""],
    "double": ["1", True, [], ""],
    "boolean": ["true", 0, 1, []],
    "date": [20260722, "22/07/2026", "2026-02-30", True],
    "timestamptz": ["soon", True, [], 1.5],
    "jsonb": [],
}


def broken(definition: TypeDefinition) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The sample, wrong in one field at a time."""
    rows: list[dict[str, Any]] = json.loads(definition.sample.body)
    for column in definition.columns:
        [field] = column.path
        for what, value in _wrong(column):
            changed = copy.deepcopy(rows)
            if what == "missing":
                del changed[-1][field]
            elif what == "renamed":
                changed[-1][f"{field}_v2"] = changed[-1].pop(field)
            else:
                changed[-1][field] = value
            yield f"{column.name} {what} {value!r}", changed


def _wrong(column: Column) -> Iterator[tuple[str, Any]]:
    yield "missing", None
    yield "renamed", None
    if not column.nullable:
        yield "null", None
    for value in WRONG[column.type]:
        if not (value == "" and column.empty_is_null):
            yield "mistyped", value
    if column.maximum is not None and column.type != "date":
        yield "too large", int(column.maximum) + 1  # type: ignore[arg-type] # not a date
    if column.minimum is not None and column.type != "date":
        yield "too small", int(column.minimum) - 1  # type: ignore[arg-type] # not a date
    if column.max_length is not None and column.type == "text":
        yield "too long", "x" * (column.max_length + 1)


def stored(definition: TypeDefinition) -> list[str]:
    """The wrong answers that would have been stored."""
    found = []
    for what, rows in broken(definition):
        results = validate(definition, [definition.sample.key], json.dumps(rows).encode(), content_type=None, now=NOW)
        found += [what] if isinstance(results[definition.sample.key], Value) else []
    return found


@pytest.mark.parametrize("definition", MARKET, ids=lambda definition: definition.name)
def test_no_wrong_field_of_any_shipped_type_is_stored(definition: TypeDefinition) -> None:
    """Missing, renamed, null, mistyped, out of bounds: one at a time, for every column."""
    assert len(list(broken(definition))) > 4 * len(definition.columns)
    assert stored(definition) == []


@pytest.mark.parametrize("body", ["[]", "{}", "", "<html>", '{"Error Message": "x"}', "[{}]", "null", "[1]"])
@pytest.mark.parametrize("definition", MARKET, ids=lambda definition: definition.name)
def test_an_answer_without_data_is_never_a_value(definition: TypeDefinition, body: str) -> None:
    """Whatever the type."""
    [found] = validate(definition, [definition.sample.key], body.encode(), content_type=None, now=NOW).values()

    assert isinstance(found, Failure | Missing)


@pytest.mark.parametrize("definition", MARKET, ids=lambda definition: definition.name)
def test_another_symbol_is_never_stored(definition: TypeDefinition) -> None:
    """Ask for A, answer B (F-D9)."""
    [found] = validate(definition, ["OTHER"], definition.sample.body.encode(), content_type=None, now=NOW).values()

    assert isinstance(found, Failure)
    assert found.reason == "wrong_key"


# ── broken on purpose ──


def test_a_missing_field_as_null_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a lenient reader would do it."""
    monkeypatch.setattr(key_rows, "_field", lambda row, _, path: row.get(path[0]))
    quote = next(definition for definition in MARKET if definition.name == "quote")

    assert "year_high missing None" in stored(quote)


def test_a_text_as_a_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a converting reader would do it."""
    lenient = cell._is_number
    monkeypatch.setattr(cell, "_is_number", lambda value: lenient(value) or value == "1")
    monkeypatch.setattr(cell, "_check_bounds", lambda *_: None)
    quote = next(definition for definition in MARKET if definition.name == "quote")
    monkeypatch.setattr(cell, "plain_number", str)

    found = stored(quote)
    assert "price mistyped '1'" in found
    assert "price too small -1" in found


def test_bounds_that_python_forgot_are_held_by_the_table(livewell_dsn: str) -> None:
    """The second line: the CHECK comes from the same definition."""
    quote = next(definition for definition in MARKET if definition.name == "quote")
    with RegistrySession(livewell_dsn) as session:
        session.clear()
        session.apply_upstream()
        session.apply(quote)
        [good] = validate(quote, ["AAPL"], quote.sample.body.encode(), content_type=None, now=NOW).values()
        assert isinstance(good, Value)

        for wrong in ({"price": "0"}, {"price": None}, {"exchange": "x" * 51}, {"volume": "-1"}):
            with pytest.raises(psycopg.errors.IntegrityError):
                session.write("quote", {"AAPL": [{**good.rows[0], **wrong}]})
        assert session.write("quote", {"AAPL": good.rows}) == 1


# ── no other way ──

# Who may say livewell_data: what makes, compares, reads and writes the tables, and the grants.
TABLE_FUNCTIONS = {
    "apply_type",
    "apply_upstream",
    "bounds_statement",
    "compare_bounds",
    "compare_table",
    "create_statement",
    "read_values",
    "write_values",
}


def other_ways(sources: dict[str, str]) -> list[str]:
    """Functions that touch data tables besides these, and callers of write_values besides the store."""
    found = [
        name
        for name, text in sources.items()
        if name.endswith(".sql") and "livewell_data" in text and Path(name).stem not in TABLE_FUNCTIONS
    ]
    found += [
        name
        for name, text in sources.items()
        if re.search(r"write_values\s*\(", text)
        and Path(name).stem != "write_values"
        and not Path(name).stem.startswith("store")
    ]
    return found


def code() -> dict[str, str]:
    paths = [*SOURCE.rglob("sql/functions/**/*.sql"), *SOURCE.rglob("*.py")]
    return {str(path.relative_to(SOURCE)): re.sub(r"--[^\n]*", "", path.read_text()) for path in paths}


def test_only_the_store_writes_values() -> None:
    """And only through the one function."""
    assert other_ways(code()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("refresh/sql/functions/shortcut.sql", "INSERT INTO livewell_data.quote VALUES (1)"),
        ("refresh/fetch/upstream_call.py", "SELECT livewell.write_values(%s)"),
    ],
)
def test_another_way_is_noticed(name: str, text: str) -> None:
    """Broken on purpose."""
    assert other_ways({**code(), name: text}) == [name]
