"""Contract 22: table, schema and upsert change together.

The definition is the only source of all three, and a table that was changed by hand is found.

Broken once, and kept broken below: every kind of change by hand, and an upsert that forgets a
column.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pydantic import SecretStr

from livewell.apps.market import type_files
from livewell.db import Database, scratch
from livewell.refresh.definition.document import read_file
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.registry.apply import apply
from livewell.refresh.registry.drift import Drift, find_drift
from livewell.refresh.result import Value
from livewell.refresh.validate.answer import validate
from livewell.settings import Settings
from tests.support.refresh_types import NOW, QUOTE, type_of
from tests.support.registry_sql import RegistrySession
from tests.support.variants import changed, source


@pytest.fixture(scope="module")
def applied(livewell_server: str, livewell_template: str) -> Iterator[str]:
    """A database with the shipped types applied, for all tests of this file."""
    name = f"livewell_test_{secrets.token_hex(6)}"
    dsn = scratch.clone(livewell_server, livewell_template, name)
    with RegistrySession(dsn) as session:
        session.clear()
        for path in type_files():
            found = read_file(path.read_bytes(), path.name)
            session.apply(found) if isinstance(found, TypeDefinition) else session.apply_upstream(found)
    yield dsn
    scratch.drop(livewell_server, name)


@pytest.fixture
def registry(applied: str) -> Iterator[RegistrySession]:
    """A session on it whose changes are rolled back."""
    with RegistrySession(applied) as session:
        session.rows("BEGIN")
        yield session
        session.rows("ROLLBACK")


async def drift(registry: RegistrySession) -> list[Drift]:
    """What `types check` would say."""

    async def call(query: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        return registry.rows(query, *params)

    return await find_drift(call)


def shipped(name: str) -> TypeDefinition:
    [path] = [path for path in type_files() if path.stem == name]
    found = read_file(path.read_bytes(), path.name)
    assert isinstance(found, TypeDefinition)
    return found


async def test_what_was_applied_has_no_drift(registry: RegistrySession) -> None:
    """For every shipped type."""
    assert await drift(registry) == []


async def test_applying_the_shipped_types_again_changes_nothing(applied: str) -> None:
    """Every version stays: the product's own way of applying agrees with what is there."""
    settings = Settings(database_url=SecretStr(applied))
    database = Database(applied, settings)
    await database.open()
    again = [await apply(database, read_file(path.read_bytes(), path.name), path.name) for path in type_files()]
    await database.close()

    assert {(done.outcome, done.version) for done in again} == {("unchanged", 1)}


@pytest.mark.parametrize("name", [path.stem for path in type_files()[1:]])
async def test_what_the_schema_lets_through_the_upsert_stores_whole(registry: RegistrySession, name: str) -> None:
    """Every column of every row of the sample is found again, and storing it twice writes nothing."""
    definition = shipped(name)
    key = definition.sample.key
    [valid] = validate(definition, [key], definition.sample.body.encode(), content_type=None, now=NOW).values()
    assert isinstance(valid, Value)

    assert registry.write(name, {key: valid.rows}) == len(valid.rows)
    assert registry.write(name, {key: valid.rows}) == 0
    value = registry.read(name, key)[key]
    rows = value if isinstance(value, list) else [value]
    assert [set(row) for row in rows] == [{column.name for column in definition.columns}] * len(valid.rows)
    nulls = sum(one is None for row in rows for one in row.values())
    assert nulls == sum(one is None for row in valid.rows for one in row.values())


async def test_an_upsert_that_forgets_a_column_is_noticed(registry: RegistrySession) -> None:
    """Broken on purpose: the same check, with an upsert that was made from another list."""
    definition = shipped("quote")
    [valid] = validate(definition, ["AAPL"], definition.sample.body.encode(), content_type=None, now=NOW).values()
    assert isinstance(valid, Value)
    last = "WITH ORDINALITY AS e (value, ordinality)"
    registry.rows(
        changed(source("write_values"), (f"{last}) AS c;", f"{last} WHERE e.value ->> 'name' <> 'volume') AS c;"))
    )
    registry.write("quote", {"AAPL": valid.rows})

    assert registry.read("quote", "AAPL")["AAPL"]["volume"] is None
    assert valid.rows[0]["volume"] is not None


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "ALTER TABLE livewell_data.quote ADD COLUMN mine integer",
            'column "mine" is in the table and not in the definition',
        ),
        ("ALTER TABLE livewell_data.quote DROP COLUMN volume", 'column "volume" is missing'),
        ("ALTER TABLE livewell_data.quote RENAME COLUMN volume TO volumes", 'column "volume" is missing'),
        (
            "ALTER TABLE livewell_data.quote ALTER COLUMN volume TYPE double precision",
            'column "volume" is double precision in the table and numeric in the definition',
        ),
        (
            "ALTER TABLE livewell_data.quote ALTER COLUMN price DROP NOT NULL",
            'column "price" is nullable in the table and NOT NULL in the definition',
        ),
        (
            "ALTER TABLE livewell_data.quote ALTER COLUMN volume SET NOT NULL",
            'column "volume" is NOT NULL in the table and nullable in the definition',
        ),
        (
            "ALTER TABLE livewell_data.quote DROP CONSTRAINT price_bounds",
            'the bounds of column "price" are none in the table',
        ),
        (
            (
                "ALTER TABLE livewell_data.quote DROP CONSTRAINT price_bounds, ADD CONSTRAINT price_bounds CHECK "
                "(price > -5)"
            ),
            'the bounds of column "price" are unknown in the table',
        ),
        (
            "ALTER TABLE livewell_data.quote ADD CHECK (price < 5)",
            'constraint "quote_price_check" is in the table and not in the definition',
        ),
        (
            "ALTER TABLE livewell_data.quote DROP CONSTRAINT quote_pkey",
            "the primary key is () in the table and (key) in the definition",
        ),
        (
            "ALTER TABLE livewell_data.news DROP CONSTRAINT news_pkey, ADD PRIMARY KEY (url)",
            "the primary key is (url) in the table and (key, url) in the definition",
        ),
        ("DROP TABLE livewell_data.quote", "table livewell_data.quote does not exist"),
        (
            "UPDATE livewell.data_type SET columns = columns - 0 WHERE name = 'quote'",
            "data_type.columns is not what its definition says",
        ),
        (
            "UPDATE livewell.data_type SET definition = definition #- '{columns,volume}' WHERE name = 'quote'",
            "data_type.columns is not what its definition says",
        ),
        ("UPDATE livewell.data_type SET definition = '{}' WHERE name = 'quote'", "its definition cannot be read"),
    ],
)
async def test_a_change_by_hand_is_found(registry: RegistrySession, statement: str, said: str) -> None:
    """In the table, in the columns, in the definition."""
    registry.rows(statement)

    found = await drift(registry)
    assert any(one.what.startswith(said) for one in found), found


async def test_the_sql_that_is_told_ends_the_drift(registry: RegistrySession) -> None:
    """What `types check` prints can be run."""
    registry.rows(
        "ALTER TABLE livewell_data.quote ADD COLUMN mine integer CHECK (mine > 0), ALTER COLUMN volume TYPE "
        "double precision, DROP CONSTRAINT price_bounds"
    )

    for one in await drift(registry):
        assert one.statement is not None
        registry.rows(one.statement)

    assert await drift(registry) == []


def test_a_column_that_is_added_is_stored_at_once(registry: RegistrySession) -> None:
    """One file changed: table, schema and upsert with it."""
    registry.rows("DROP TABLE livewell_data.quote")
    registry.rows("DELETE FROM livewell.data_type WHERE name = 'quote'")
    registry.apply(type_of(QUOTE))
    body = QUOTE["sample"]["body"].replace('"price"', '"pe": 31.2, "price"')
    wider = type_of(QUOTE, columns={"pe": {"type": "numeric", "nullable": True}}, sample={"body": body})

    assert registry.apply(wider).outcome == "changed"
    registry.store(wider, "AAPL", body)
    assert registry.read("quote", "AAPL")["AAPL"]["pe"] == 31.2
