"""Times to live of single keys, and the keys that scheduled types walk through."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.support.refresh_types import QUOTE, type_of
from tests.support.registry_sql import RegistrySession


@pytest.fixture
def watched(registry: RegistrySession) -> RegistrySession:
    """AAPL was checked ten seconds ago and is due in fifty."""
    registry.apply(type_of(QUOTE))
    registry.rows(
        "INSERT INTO livewell.ledger (data_type, key, upstream, status_at, checked_at, fetched_at, source_at, "
        "version, due_at) "
        "SELECT 'quote', 'AAPL', 'fmp', n, n - interval '10 s', n - interval '10 s', n - interval '10 s', 1, n "
        "+ interval '50 s' FROM (SELECT livewell.now() AS n) AS x"
    )
    return registry


def due_in(registry: RegistrySession) -> int:
    return int(
        registry.value(
            "SELECT round(extract(epoch FROM due_at - livewell.now())) FROM livewell.ledger WHERE key = 'AAPL'"
        )
    )


def test_a_shorter_time_brings_the_key_forward_at_once(watched: RegistrySession) -> None:
    """And whoever streams it is told."""
    before = watched.value("SELECT status_version FROM livewell.ledger")
    watched.rows("SELECT livewell.set_ttl('quote', 'AAPL', '20 s')")

    assert due_in(watched) in (9, 10)
    assert watched.value("SELECT status_version FROM livewell.ledger") == before + 1


def test_a_longer_time_and_back(watched: RegistrySession) -> None:
    """Clearing it brings back what the type says."""
    watched.rows("SELECT livewell.set_ttl('quote', 'AAPL', '1 hour')")
    assert due_in(watched) in (3589, 3590)

    assert watched.value("SELECT livewell.clear_ttl('quote', 'AAPL')") is True
    assert due_in(watched) in (49, 50)
    assert watched.value("SELECT livewell.clear_ttl('quote', 'AAPL')") is False


def test_a_parked_key_stays_parked(watched: RegistrySession) -> None:
    """Nobody watches it."""
    watched.rows("UPDATE livewell.ledger SET due_at = NULL")
    watched.rows("SELECT livewell.set_ttl('quote', 'AAPL', '1 s')")

    assert watched.value("SELECT due_at FROM livewell.ledger") is None


def test_a_key_that_nobody_asked_for_may_have_one(watched: RegistrySession) -> None:
    """Listed with those of others, page by page."""
    watched.rows("SELECT livewell.set_ttl('quote', 'MSFT', '2 s')")
    watched.rows("SELECT livewell.set_ttl('quote', 'AAPL', '1 s')")

    assert watched.rows("SELECT key, ttl FROM livewell.list_ttls()") == [
        ("AAPL", timedelta(seconds=1)),
        ("MSFT", timedelta(seconds=2)),
    ]
    assert watched.column("SELECT key FROM livewell.list_ttls('quote', 'quote', 'AAPL')") == ["MSFT"]


@pytest.mark.parametrize("ttl", ["0", "-1 s", "401 days"])
def test_a_time_that_is_not_positive_is_refused(watched: RegistrySession, ttl: str) -> None:
    """By the function, and by the table for whoever goes around it."""
    with pytest.raises(psycopg.Error, match="more than 0 and at most 400 days"):
        watched.rows("SELECT livewell.set_ttl('quote', 'AAPL', %s)", ttl)
    with pytest.raises(psycopg.errors.CheckViolation):
        watched.rows("UPDATE livewell.ledger SET ttl_override = %s", ttl)


@pytest.mark.parametrize(
    "call",
    [
        "set_ttl('quote', 'no such', '1 s')",
        "add_universe('quote', '{AAPL,no such}')",
        "add_universe('quote', '{NULL}')",
    ],
)
def test_keys_that_do_not_fit_are_refused(watched: RegistrySession, call: str) -> None:
    """And then nothing is added."""
    with pytest.raises(psycopg.Error, match="does not fit"):
        watched.rows(f"SELECT livewell.{call}")

    assert watched.value("SELECT count(*) FROM livewell.universe") == 0


@pytest.mark.parametrize(
    "call",
    [
        "set_ttl('nothing', 'A', '1 s')",
        "clear_ttl('nothing', 'A')",
        "add_universe('nothing', '{A}')",
        "list_universe('nothing')",
        "read_values('nothing', '{A}')",
    ],
)
def test_an_unknown_type_is_refused(watched: RegistrySession, call: str) -> None:
    """By name."""
    with pytest.raises(psycopg.Error, match='type "nothing" is not in the registry'):
        watched.rows(f"SELECT livewell.{call}")


def test_keys_come_into_the_universe_and_leave_it(watched: RegistrySession) -> None:
    """Twice is once; who left can come back."""
    assert watched.value("SELECT livewell.add_universe('quote', '{MSFT,AAPL,MSFT}')") == 2
    assert watched.value("SELECT livewell.add_universe('quote', '{MSFT}')") == 0
    assert watched.value("SELECT livewell.deactivate_universe('quote', '{MSFT,NONE}')") == 1
    assert watched.column("SELECT key FROM livewell.list_universe('quote')") == ["AAPL"]
    assert watched.rows("SELECT key, active FROM livewell.list_universe('quote', p_inactive => true)") == [
        ("AAPL", True),
        ("MSFT", False),
    ]
    assert watched.value("SELECT livewell.add_universe('quote', '{MSFT}')") == 1


def test_more_than_ten_thousand_keys_are_more_than_one_call(watched: RegistrySession) -> None:
    """Refused, not cut."""
    with pytest.raises(psycopg.Error, match="at most 10000"):
        watched.rows(
            "SELECT livewell.add_universe('quote', ARRAY(SELECT 'A' || n FROM generate_series(1, 10001) AS n))"
        )


def test_an_operator_may_do_all_this(watched: RegistrySession) -> None:
    """Without being the owner, with the rights of grants.sql alone."""
    watched.rows("SET ROLE livewell_operate")
    try:
        watched.rows("SELECT livewell.set_ttl('quote', 'AAPL', '1 s')")
        assert watched.rows("SELECT key, ttl FROM livewell.list_ttls()") == [("AAPL", timedelta(seconds=1))]
        assert watched.value("SELECT livewell.clear_ttl('quote', 'AAPL')") is True
        assert watched.value("SELECT livewell.add_universe('quote', '{A}')") == 1
        assert watched.value("SELECT livewell.deactivate_universe('quote', '{A}')") == 1
    finally:
        watched.rows("RESET ROLE")
