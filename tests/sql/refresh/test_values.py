"""Values are written and read by the columns of their type."""

from __future__ import annotations

import json

import pytest

from tests.support.refresh_types import PRICES, QUOTE, type_of
from tests.support.registry_sql import RegistrySession

DAY = {"date": "2026-07-21", "close": "229.45"}
NEXT = {"date": "2026-07-22", "close": "231.4"}


def test_one_row_per_key_is_inserted_and_updated(registry: RegistrySession) -> None:
    """And not written when it is the same."""
    quote = type_of(QUOTE)
    registry.apply(quote)
    body = QUOTE["sample"]["body"]

    assert registry.store(quote, "AAPL", body) == 1
    assert registry.store(quote, "AAPL", body) == 0
    assert registry.store(quote, "AAPL", body.replace("231.40", "232")) == 1
    assert registry.read("quote", "AAPL", "MSFT") == {
        "AAPL": {"price": 232, "volume": 41237893, "name": "Apple Inc.", "timestamp": 1784750401}
    }


def test_no_digit_is_lost(registry: RegistrySession) -> None:
    """A numeric is exactly what the upstream wrote."""
    quote = type_of(QUOTE)
    registry.apply(quote)

    registry.store(
        quote, "AAPL", QUOTE["sample"]["body"].replace("231.40", "0.1234567890123456789012345678901234567890")
    )

    assert registry.value("SELECT price::text FROM livewell_data.quote") == "0.1234567890123456789012345678901234567890"


def test_a_series_grows_and_corrects_itself(registry: RegistrySession) -> None:
    """Rows that are no longer in the answer stay."""
    registry.apply(type_of(PRICES))
    registry.write("prices", {"A": [DAY]})

    assert registry.write("prices", {"A": [NEXT, {**DAY, "close": "1"}]}) == 2
    assert registry.read("prices", "A") == {
        "A": [{"date": "2026-07-21", "close": 1}, {"date": "2026-07-22", "close": 231.4}]
    }


def test_a_set_is_replaced_as_a_whole(registry: RegistrySession) -> None:
    """For the keys that were answered, and no others."""
    registry.apply(type_of(PRICES, answer={"kind": "set"}))
    registry.write("prices", {"A": [DAY], "B": [DAY]})

    assert registry.write("prices", {"A": [NEXT]}) == 1
    assert registry.read("prices", "A", "B") == {"A": [{**NEXT, "close": 231.4}], "B": [{**DAY, "close": 229.45}]}


def test_rows_of_other_keys_are_not_written(registry: RegistrySession) -> None:
    """Whatever the document holds, only the keys that were given."""
    registry.apply(type_of(PRICES))
    rows = json.dumps([{"key": "A", **DAY}, {"key": "B", **DAY}])

    registry.rows("SELECT livewell.write_values(t, '{A}', %s::jsonb) FROM livewell.data_type t", rows)

    assert list(registry.read("prices", "A", "B")) == ["A"]


def test_of_a_long_series_the_last_rows_are_read(registry: RegistrySession) -> None:
    """In their order."""
    registry.apply(type_of(PRICES))
    registry.write("prices", {"A": [{"date": f"2026-01-{day:02}", "close": str(day)} for day in range(1, 32)]})

    [(_, value)] = registry.rows("SELECT * FROM livewell.read_values('prices', '{A}', 2)")

    assert [row["close"] for row in value] == [30, 31]


@pytest.mark.parametrize("key", ["", "a", "AAPL;", "A" * 21, "A\nB", "A B", "ÄÖ"])
def test_a_key_that_does_not_fit_is_known_by_sql_too(registry: RegistrySession, key: str) -> None:
    """The same answer as in Python."""
    quote = type_of(QUOTE)

    assert registry.value("SELECT livewell.key_fits(%s, %s)", quote.fetch.pattern.text, key) is False
    assert quote.fetch.pattern.fits(key) is False
