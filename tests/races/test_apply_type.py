"""Applying types: several at once, while somebody uses the table, and with a function that forgets to quote."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from livewell.db import Database
from livewell.errors import DatabaseError, LivewellError
from livewell.refresh.registry import apply as applying
from livewell.refresh.registry.apply import apply
from livewell.settings import Settings
from tests.support.refresh_types import QUOTE, type_of
from tests.support.registry_sql import RegistrySession
from tests.support.variants import variant

WIDER = {"pe": {"type": "numeric", "nullable": True}}


@pytest.fixture
def registry(livewell_dsn: str) -> Iterator[RegistrySession]:
    """A registry with one upstream and no types."""
    with RegistrySession(livewell_dsn) as session:
        session.clear()
        session.apply_upstream()
        yield session


def apply_once(dsn: str) -> str:
    """One process that applies the same file, as often as it has to."""
    with RegistrySession(dsn) as session:
        while True:
            try:
                return session.apply(type_of(QUOTE)).outcome
            except psycopg.errors.LockNotAvailable:
                continue


def test_who_apply_the_same_file_at_once_make_one_type(registry: RegistrySession, livewell_dsn: str) -> None:
    """A deployment starts four processes, and each applies."""
    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(apply_once, [livewell_dsn] * 4))

    assert outcomes == ["created", "unchanged", "unchanged", "unchanged"]
    assert registry.column("SELECT version FROM livewell.data_type") == [1]


def test_without_the_lock_it_breaks(registry: RegistrySession, livewell_dsn: str) -> None:
    """Broken on purpose: the second one meets the first one's table, and fails with an error that no retry is for."""
    unlocked = ("PERFORM pg_advisory_xact_lock(hashtextextended('livewell.registry', 0));", "")
    with (
        variant(livewell_dsn, "apply_type", unlocked, ("SET lock_timeout = '100ms'\n", "")),
        RegistrySession(livewell_dsn) as first,
    ):
        first.rows("BEGIN")
        first.apply(type_of(QUOTE))
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(apply_once, livewell_dsn)
            _until_somebody_waits(registry)
            first.rows("COMMIT")
            with pytest.raises((psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable)):
                second.result(10)


def _until_somebody_waits(session: RegistrySession) -> None:
    for _ in range(1000):
        if session.value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ):
            return
        session.rows("SELECT pg_sleep(0.01)")
    raise AssertionError("nobody waited for a lock")


async def test_a_table_in_use_is_altered_when_it_is_free(
    registry: RegistrySession, livewell_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody queues behind us meanwhile: we give up after 100 ms and try again (contract 16)."""
    registry.apply(type_of(QUOTE))
    tries: list[str] = []
    with RegistrySession(livewell_dsn) as reader:
        reader.rows("BEGIN")
        reader.rows("SELECT * FROM livewell_data.quote")

        async def pause() -> None:
            tries.append("again")
            if len(tries) == 2:
                reader.rows("COMMIT")

        monkeypatch.setattr(applying, "_pause", pause)
        done = await _apply(livewell_dsn)

    assert (done.outcome, len(tries)) == ("changed", 2)


async def test_a_table_that_is_never_free_is_given_up(
    registry: RegistrySession, livewell_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing changed."""
    registry.apply(type_of(QUOTE))
    monkeypatch.setattr(applying, "_TRIES", 2)
    with RegistrySession(livewell_dsn) as reader:
        reader.rows("BEGIN")
        reader.rows("SELECT * FROM livewell_data.quote")
        with pytest.raises(DatabaseError, match="lock timeout"):
            await _apply(livewell_dsn)

    assert registry.column("SELECT version FROM livewell.data_type") == [1]


async def _apply(dsn: str) -> Any:
    body = QUOTE["sample"]["body"].replace('"price"', '"pe": 31.2, "price"')
    database = Database(dsn, Settings(database_url=SecretStr(dsn)))
    await database.open()
    try:
        return await apply(database, type_of(QUOTE, columns=WIDER, sample={"body": body}), "quote.toml")
    finally:
        await database.close()


EVIL = [
    {
        "name": "price",
        "type": "numeric",
        "nullable": True,
        "key": False,
        "bounds": {"min": "0); DROP TABLE livewell_data.victim; --"},
    }
]


def test_a_bound_cannot_become_sql(registry: RegistrySession) -> None:
    """Not even one that the owner wrote into the row by hand."""
    registry.rows("CREATE TABLE livewell_data.victim ()")
    registry.rows("ALTER TABLE livewell_data.victim OWNER TO livewell_owner")

    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        registry.apply(type_of(QUOTE), columns=EVIL)

    assert registry.value("SELECT to_regclass('livewell_data.victim') IS NOT NULL")


def test_a_bound_that_is_not_quoted_is_sql(registry: RegistrySession, livewell_dsn: str) -> None:
    """Broken on purpose: with %s in the place of %L the table is gone."""
    registry.rows("CREATE TABLE livewell_data.victim ()")
    registry.rows("ALTER TABLE livewell_data.victim OWNER TO livewell_owner")

    with variant(livewell_dsn, "column_bounds", ("'%I %s %L::%s', v_name", "'%I %s %s', v_name")):
        registry.apply(type_of(QUOTE), columns=EVIL)

    assert registry.value("SELECT to_regclass('livewell_data.victim') IS NULL")


async def test_who_is_not_the_owner_is_told_so(registry: RegistrySession, livewell_dsn: str) -> None:
    """In words, not as a Postgres error."""
    with RegistrySession(livewell_dsn) as admin:
        role = f"livewell_test_{secrets.token_hex(4)}"
        admin.rows(f"CREATE ROLE {role} LOGIN PASSWORD 'x' IN ROLE livewell_operate, livewell_readonly")
        dsn = make_conninfo("", **{**conninfo_to_dict(livewell_dsn), "user": role, "password": "x"})
        database = Database(dsn, Settings(database_url=SecretStr(dsn)))
        await database.open()
        try:
            with pytest.raises(LivewellError, match="only the owner may change the registry"):
                await apply(database, type_of(QUOTE), "quote.toml")
        finally:
            await database.close()
            admin.rows(f"DROP ROLE {role}")
