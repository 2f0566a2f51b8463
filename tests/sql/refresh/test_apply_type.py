"""Definitions become rows, tables, limiters and queues, together or not at all."""

from __future__ import annotations

import psycopg
import pytest

from livewell.refresh.definition.model import TypeDefinition
from tests.support.refresh_types import PRICES, QUOTE, type_of, upstream_of
from tests.support.registry_sql import RegistrySession


def with_columns(**columns: object) -> TypeDefinition:
    """The quote with columns replaced; the sample is not looked at here."""
    return type_of(QUOTE, columns=columns)


def test_a_new_type_gets_its_table_row_and_queue(registry: RegistrySession) -> None:
    """All from the one definition."""
    answer = registry.apply(type_of(QUOTE))

    assert (answer.outcome, answer.version) == ("created", 1)
    columns = registry.rows(
        "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = "
        "'livewell_data.quote'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert columns == [
        ("key", "text", True),
        ("price", "numeric", True),
        ("volume", "numeric", False),
        ("name", "text", False),
        ("timestamp", "bigint", True),
    ]
    assert registry.rows(
        "SELECT attempts, backoff_base_seconds, backoff_cap_seconds, limiter FROM livewell.queue WHERE name = "
        "'refresh.fmp'"
    ) == [(4, 5.0, 300.0, "fmp")]
    assert registry.value("SELECT tableowner FROM pg_tables WHERE schemaname = 'livewell_data'") == "livewell_owner"


def test_the_caller_is_himself_again_afterwards(registry: RegistrySession) -> None:
    """The owner's role ends with the function, also inside a longer transaction."""
    before = registry.value("SELECT current_user::text")
    with registry.connection.transaction():
        registry.apply(type_of(QUOTE))

        assert registry.value("SELECT current_user::text") == before
        assert registry.value("SELECT current_setting('lock_timeout')") == "0"


def test_applying_again_changes_nothing(registry: RegistrySession) -> None:
    """Not even the version."""
    registry.apply(type_of(QUOTE))

    assert registry.apply(type_of(QUOTE)).outcome == "unchanged"
    assert registry.apply_upstream() == ("unchanged", 1)
    assert registry.column("SELECT version FROM livewell.data_type") == [1]


def test_applying_again_ends_the_parking_of_a_type(registry: RegistrySession) -> None:
    """The plan includes the endpoint by now, and the same file says so."""
    registry.apply(type_of(QUOTE))
    registry.connection.execute("UPDATE livewell.data_type SET parked_reason = 'entitlement_type'")

    assert registry.apply(type_of(QUOTE)).outcome == "changed"
    assert registry.column("SELECT parked_reason FROM livewell.data_type") == [None]
    assert registry.apply(type_of(QUOTE)).outcome == "unchanged"


def test_a_new_time_to_live_is_a_new_version(registry: RegistrySession) -> None:
    """Without touching the table."""
    registry.apply(type_of(QUOTE))

    answer = registry.apply(type_of(QUOTE, type={"ttl": "5m"}))

    assert (answer.outcome, answer.version, answer.statements) == ("changed", 2, [])
    assert registry.value("SELECT extract(epoch FROM ttl)::int FROM livewell.data_type") == 300


def test_an_upstream_keeps_what_its_limiter_has_used(registry: RegistrySession) -> None:
    """A new limit is a new limit, and nothing else."""
    registry.rows("DELETE FROM livewell.limiter_usage")
    registry.rows(
        "INSERT INTO livewell.limiter_usage VALUES ('fmp', 'FMP_API_KEY', date_trunc('hour', livewell.now()), 77, 1)"
    )

    assert registry.apply_upstream(upstream_of(upstream={"rate": "750/min"})) == ("changed", 2)
    assert registry.value("SELECT rate_calls FROM livewell.limiter WHERE name = 'fmp'") == 750
    assert registry.value("SELECT units FROM livewell.limiter_usage WHERE limiter = 'fmp'") == 77


def test_a_pool_has_its_own_queue(registry: RegistrySession) -> None:
    """Under the same limiter."""
    registry.apply(type_of(QUOTE, type={"pool": "slow"}))

    assert registry.value("SELECT limiter FROM livewell.queue WHERE name = 'refresh.fmp.slow'") == "fmp"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"day_low": {"type": "numeric", "nullable": True, "min": 0}}, 'column "day_low" is missing'),
        ({"price": {"type": "numeric", "min": 0, "max": 20000000}}, 'the bounds of column "price"'),
        ({"price": {"type": "numeric"}}, 'the bounds of column "price"'),
        (
            {"price": {"type": "numeric", "nullable": True, "min": 0, "above_min": True, "max": 10000000}},
            'column "price" is NOT NULL',
        ),
        (
            {"name": {"type": "text", "nullable": True, "max_length": 500, "empty_is_null": True}},
            'the bounds of column "name"',
        ),
    ],
)
def test_an_addition_is_made(registry: RegistrySession, columns: dict[str, object], said: str) -> None:
    """New nullable columns and wider bounds; the rows that are there stay."""
    registry.apply(type_of(QUOTE))
    registry.store(type_of(QUOTE), "AAPL", QUOTE["sample"]["body"])

    answer = registry.apply(with_columns(**columns))

    assert (answer.outcome, answer.version) == ("changed", 2)
    assert answer.reasons is not None
    assert answer.reasons[0].startswith(said)
    assert list(registry.read("quote", "AAPL")) == ["AAPL"]
    assert registry.apply(with_columns(**columns)).outcome == "unchanged"


@pytest.mark.parametrize(
    ("columns", "statement"),
    [
        ({"day_low": {"type": "numeric"}}, "ALTER TABLE livewell_data.quote ADD COLUMN day_low pg_catalog.numeric;"),
        ({"volume": None}, "ALTER TABLE livewell_data.quote DROP COLUMN volume;"),
        (
            {"volume": {"type": "bigint", "nullable": True, "min": 0}},
            "ALTER TABLE livewell_data.quote ALTER COLUMN volume TYPE pg_catalog.int8 USING volume::pg_catalog.int8;",
        ),
        (
            {"volume": {"type": "numeric", "min": 0}},
            "ALTER TABLE livewell_data.quote ALTER COLUMN volume SET NOT NULL;",
        ),
        (
            {"price": {"type": "numeric", "min": 0, "above_min": True, "max": 5}},
            "ALTER TABLE livewell_data.quote DROP CONSTRAINT IF EXISTS price_bounds;",
        ),
        (
            {"timestamp": {"type": "bigint", "min": 1}},
            "ALTER TABLE livewell_data.quote DROP CONSTRAINT IF EXISTS timestamp_bounds;",
        ),
    ],
)
def test_anything_else_is_refused_with_the_sql(
    registry: RegistrySession, columns: dict[str, object], statement: str
) -> None:
    """And nothing is done: neither to the table nor to the row."""
    registry.apply(type_of(QUOTE))

    answer = registry.apply(with_columns(**columns, extra={"type": "text", "nullable": True}))

    assert answer.outcome == "refused"
    assert any(one.startswith(statement) for one in answer.statements)
    assert registry.column("SELECT version FROM livewell.data_type") == [1]
    assert (
        registry.value(
            "SELECT count(*) FROM pg_attribute WHERE attrelid = 'livewell_data.quote'::regclass AND attname = 'extra'"
        )
        == 0
    )


def test_after_the_person_ran_the_sql_the_file_applies(registry: RegistrySession) -> None:
    """What is printed is enough."""
    registry.apply(type_of(QUOTE))
    narrower = with_columns(
        price={"type": "numeric", "min": 1, "max": 5}, volume=None, timestamp={"type": "integer", "min": 1}
    )
    refused = registry.apply(narrower)

    for statement in refused.statements:
        registry.rows(statement)

    assert registry.apply(narrower).outcome == "changed"
    assert registry.apply(narrower).outcome == "unchanged"


def test_another_row_key_is_refused(registry: RegistrySession) -> None:
    """The primary key is not an addition."""
    registry.apply(type_of(PRICES))

    answer = registry.apply(type_of(PRICES, answer={"row_key": ["date", "close"]}))

    assert answer.outcome == "refused"
    assert "ADD PRIMARY KEY (key, date, close)" in answer.statements[-1]


def test_another_upstream_is_refused(registry: RegistrySession) -> None:
    """The ledger's rows carry it."""
    registry.apply(type_of(QUOTE))
    registry.apply_upstream(upstream_of(upstream={"name": "other"}))

    answer = registry.apply(type_of(QUOTE, type={"upstream": "other"}))

    assert answer.outcome == "refused"
    assert "UPDATE livewell.ledger SET upstream = 'other'" in answer.statements[-1]


def test_a_type_without_its_upstream_is_refused(registry: RegistrySession) -> None:
    """Nothing is left behind."""
    with pytest.raises(psycopg.Error, match='upstream "nobody" is not in the registry'):
        registry.apply(type_of(QUOTE, type={"upstream": "nobody"}))

    assert registry.value("SELECT to_regclass('livewell_data.quote')") is None


def test_a_failing_statement_leaves_no_row_and_no_table(registry: RegistrySession) -> None:
    """One transaction: a bound that is no number fails when the table is made."""
    bad = [
        {
            "name": "price",
            "type": "numeric",
            "nullable": False,
            "key": False,
            "bounds": {"min": "x'; DROP TABLE livewell.job; --"},
        }
    ]

    with pytest.raises(psycopg.Error, match="invalid input syntax for type numeric"):
        registry.apply(type_of(QUOTE), columns=bad)

    assert registry.value("SELECT count(*) FROM livewell.data_type") == 0
    assert registry.value("SELECT to_regclass('livewell_data.quote')") is None
    assert registry.value("SELECT to_regclass('livewell.job') IS NOT NULL")


@pytest.mark.parametrize(
    "name",
    ["select", "Order", "1D", "user", "a b", 'q"uote', "x; DROP TABLE livewell.job; --", "ключ", "'", "%I", "\\"],
)
def test_odd_names_are_only_names(registry: RegistrySession, name: str) -> None:
    """Also those that no file may have: whatever stands in a row, it is quoted."""
    column = {"name": name, "type": "numeric", "nullable": True, "key": False, "bounds": {"min": "0"}}

    registry.apply(type_of(QUOTE), columns=[column])

    assert registry.write("quote", {"A": [{name: "1.5"}]}) == 1
    assert registry.read("quote", "A") == {"A": {name: 1.5}}
    assert registry.value("SELECT to_regclass('livewell.job') IS NOT NULL")


@pytest.mark.parametrize("role", ["livewell_worker", "livewell_hub", "livewell_operate", "livewell_readonly"])
def test_ordinary_roles_read_the_registry_and_never_write_it(registry: RegistrySession, role: str) -> None:
    """Neither by hand nor through the functions."""
    registry.apply(type_of(QUOTE))
    denied = [
        "UPDATE livewell.data_type SET ttl = '1 day'",
        "INSERT INTO livewell.upstream SELECT * FROM livewell.upstream",
        "DELETE FROM livewell.data_type",
        "SELECT livewell.apply_type('{}')",
        "SELECT livewell.apply_upstream('{}', '{}', '{}')",
        "CREATE TABLE livewell_data.mine ()",
        "ALTER TABLE livewell_data.quote ADD COLUMN mine int",
        "DROP TABLE livewell_data.quote",
    ]
    registry.rows(f"SET ROLE {role}")
    try:
        assert registry.column("SELECT name FROM livewell.data_type") == ["quote"]
        assert registry.read("quote", "AAPL") == {}
        for statement in denied:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                registry.rows(statement)
    finally:
        registry.rows("RESET ROLE")


@pytest.mark.parametrize(
    ("role", "allowed"),
    [("livewell_worker", True), ("livewell_hub", False), ("livewell_operate", False), ("livewell_readonly", False)],
)
def test_only_workers_write_values(registry: RegistrySession, role: str, allowed: bool) -> None:
    """Into a table that was made after the grants."""
    registry.apply(type_of(QUOTE))
    writes = [
        registry.value("SELECT has_table_privilege(%s, 'livewell_data.quote', %s)", role, right)
        for right in ("INSERT", "UPDATE", "DELETE")
    ]

    assert writes == [allowed] * 3


@pytest.mark.parametrize(
    "change",
    [
        {"ttl": "0 seconds"},
        {"ttl": "-1 day"},
        {"ttl": None},
        {"negative_ttl": "0 seconds"},
        {"ttl": "401 days"},
        {"name": "x; --"},
        {"pool": "A b"},
        {"keys_max": 0},
        {"strategy": "whenever"},
        {"rows_kind": "some"},
        {"cron": "* * * * *"},
        {"size_estimate": 0},
        {"calendar": "XNYS"},
    ],
)
def test_the_table_itself_refuses_a_bad_row(registry: RegistrySession, change: dict[str, object]) -> None:
    """Whoever writes it: CHECK, NOT NULL or the type."""
    with pytest.raises(psycopg.errors.IntegrityError):
        registry.apply(type_of(QUOTE), **change)
