"""Files and rows become definitions, and mistakes become errors that say what to change."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from livewell.apps.market import type_files
from livewell.errors import InvalidDefinition
from livewell.refresh.definition import document as documents
from livewell.refresh.definition.document import read_file, read_row
from livewell.refresh.definition.model import TypeDefinition, UpstreamDefinition
from livewell.refresh.registry.sample_check import check_sample
from tests.support.refresh_types import QUOTE, changed, type_of

FILES = type_files()
TTLS = {
    "quote": 60,
    "profile": 86400,
    "earnings": 86400,
    "income_statement": 30 * 86400,
    "balance_sheet_statement": 30 * 86400,
    "cash_flow_statement": 30 * 86400,
    "end_of_day": 86400,
    "news": 900,
}
FIELDS = {
    "quote": 17,
    "profile": 36,
    "income_statement": 39,
    "balance_sheet_statement": 60,
    "cash_flow_statement": 47,
    "earnings": 7,
    "end_of_day": 10,
    "news": 8,
}


def test_the_shipped_types_are_all_there() -> None:
    """With the times to live of R27."""
    found = {
        one.name: one.ttl_seconds
        for path in FILES[1:]
        if isinstance(one := read_file(path.read_bytes(), path.name), TypeDefinition)
    }

    assert found == TTLS
    upstream = read_file(FILES[0].read_bytes(), FILES[0].name)
    assert isinstance(upstream, UpstreamDefinition)
    assert upstream.limits.columns["rate_calls"] == 300
    assert upstream.limits.columns["budget_units"] == 20 * 10**9


@pytest.mark.parametrize("path", FILES[1:], ids=lambda path: path.stem)
def test_a_shipped_sample_is_valid_and_whole(path: Path) -> None:
    """Every field of the sample is a column or the key, and there are as many as FMP documents."""
    definition = read_file(path.read_bytes(), path.name)
    assert isinstance(definition, TypeDefinition)
    found = check_sample(definition, path.name)

    assert found.added_fields == ()
    assert len(json.loads(definition.sample.body)[0]) == FIELDS[definition.name]
    assert len(definition.columns) == FIELDS[definition.name] - 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_and_its_row_are_the_same_thing(path: Path) -> None:
    """Through JSON and back, digit by digit."""
    before = read_file(path.read_bytes(), path.name)
    row = documents.write(before.document)
    after = read_row(row if isinstance(before, TypeDefinition) else f'{{"upstream": {row}}}', "row")

    if isinstance(before, TypeDefinition):
        assert isinstance(after, TypeDefinition)
        assert (before.columns, before.answer, before.fetch, before.sample) == (
            after.columns,
            after.answer,
            after.fetch,
            after.sample,
        )
    else:
        assert before == after


def test_bounds_keep_their_digits() -> None:
    """0.1 is a tenth, not the nearest float."""
    text = b"[a]\nx = 0.1000000000000000055511151231257827\n"
    assert tomllib.loads(text.decode(), parse_float=Decimal)["a"]["x"] == Decimal(
        "0.1000000000000000055511151231257827"
    )
    document = changed(QUOTE, columns={"price": {"type": "numeric", "min": Decimal("0.1")}})
    found = read_row(documents.write(document), "row")

    assert isinstance(found, TypeDefinition)
    assert found.registered_columns()[0]["bounds"] == {"min": "0.1"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {
                "columns": {"price": {"type": "numeric"}},
                "sample": {"body": QUOTE["sample"]["body"].replace("231.40", '"231.40"')},
            },
            'quote.toml: column "price": the recorded sample has "price": "231.40" (text), but the column says numeric (wrong_type). Change the column\'s type, or record a new sample with: livewell types sample quote AAPL',
        ),
        (
            {"columns": {"price": {"type": "numeric", "from": "lastPrice"}}},
            (
                'quote.toml: column "price": in the recorded sample "lastPrice" is not there; the row has name, '
                'price, symbol, timestamp, volume (missing_field). Name the field with from = "…", or record a new '
                "sample with: livewell types sample quote AAPL"
            ),
        ),
    ],
)
def test_a_sample_that_does_not_fit_says_what_to_change(parts: dict[str, dict[str, object]], message: str) -> None:
    """In the words of the house style."""
    with pytest.raises(InvalidDefinition) as error:
        check_sample(type_of(QUOTE, **parts), "quote.toml")

    assert str(error.value) == message


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"type": {"ttl": "0s"}}, "[type]: ttl '0s': more than 0 and at most 400 days is allowed"),
        ({"type": {"ttl": None}}, '[type]: "ttl" is missing'),
        ({"type": {"tll": "1m"}}, "[type]: 'tll' is not known here. Did you mean \"ttl\"?"),
        ({"answer": {"kind": "many"}}, "[answer]: kind 'many': allowed are one, set, series"),
        ({"columns": {"price": {"type": "money"}}}, "column \"price\": type 'money': allowed are text, numeric"),
        ({"fetch": {"path": "/../x"}}, "[fetch]: path '/../x': /segments of"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(parts: dict[str, dict[str, object]], said: str) -> None:
    """File, place, value, allowed."""
    with pytest.raises(InvalidDefinition) as error:
        type_of(QUOTE, **parts)

    assert str(error.value).startswith(f"test.toml: {said}")
