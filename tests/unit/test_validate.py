"""What may be stored, and why anything else may not (R14)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from livewell.model import Blame
from livewell.refresh.definition.model import TypeDefinition
from livewell.refresh.reasons import Reason
from livewell.refresh.result import Failure, Missing, Result, Singly, Value
from livewell.refresh.validate.answer import Transform, validate
from tests.support.refresh_types import NOW, PRICES, QUOTE, ROW, type_of

QUOTES = type_of(QUOTE)


def judge(
    body: str | bytes,
    *keys: str,
    definition: TypeDefinition = QUOTES,
    content_type: str | None = "application/json",
    transforms: dict[str, Transform] | None = None,
) -> Result:
    """What became of the first key."""
    keys = keys or ("AAPL",)
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return validate(definition, keys, raw, content_type=content_type, now=NOW, transforms=transforms)[keys[0]]


def row(**fields: Any) -> str:
    """An answer of one row with fields replaced; ... takes one away."""
    found = {name: value for name, value in {**json.loads(ROW), **fields}.items() if value is not ...}
    return json.dumps([found])


def with_price(text: str) -> str:
    """An answer with this as the price, as it is written."""
    return f"[{ROW.replace('231.40', text)}]"


def reason(result: Result) -> Reason | None:
    return result.reason if isinstance(result, Failure) else None


def test_a_good_answer_is_valid() -> None:
    """Every column has its value, and the times are there."""
    found = judge(f"[{ROW}]")

    assert isinstance(found, Value)
    assert found.rows == [{"price": "231.40", "volume": "41237893", "name": "Apple Inc.", "timestamp": 1784750401}]
    assert found.source_at == datetime(2026, 7, 22, 20, 0, 1, tzinfo=UTC)
    assert found.added_fields == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", Reason.EMPTY),
        ("  \n", Reason.EMPTY),
        ("{}", Reason.EMPTY),
        ("<html>", Reason.HTML),
        ("\n <!DOCTYPE html>", Reason.HTML),
        ("\ufeff<html>", Reason.HTML),
        ('{"Error Message": "Limit Reach"}', Reason.ERROR_OBJECT),
        ('{"error": "no"}', Reason.ERROR_OBJECT),
        ('{"data": []}', Reason.WRONG_SHAPE),
        ("null", Reason.WRONG_SHAPE),
        ('"text"', Reason.WRONG_SHAPE),
        ("12", Reason.WRONG_SHAPE),
        ("[1]", Reason.WRONG_SHAPE),
        ("[[]]", Reason.WRONG_SHAPE),
        ("[null]", Reason.WRONG_SHAPE),
        ("not json", Reason.NOT_JSON),
        ("[{'a': 1}]", Reason.NOT_JSON),
        ("[1] trailing", Reason.TRUNCATED),
        ("[" * 100_000, Reason.TOO_DEEP),
        ("[" * 40 + "]" * 40, Reason.TOO_DEEP),
        (b"\xff\xfe[]", Reason.NOT_UTF8),
        (b'[{"symbol": "\xe9"}]', Reason.NOT_UTF8),
        (with_price("NaN"), Reason.BAD_NUMBER),
        (with_price("Infinity"), Reason.BAD_NUMBER),
        (with_price("-Infinity"), Reason.BAD_NUMBER),
        (with_price("1e400"), Reason.BAD_NUMBER),
        (with_price("1e-400"), Reason.BAD_NUMBER),
        (with_price("1e999999999999999999999"), Reason.BAD_NUMBER),
        (with_price("9" * 30_000), Reason.BAD_NUMBER),
        (with_price("0." + "9" * 30_000), Reason.BAD_NUMBER),
        (with_price('231.4, "price": 231.5'), Reason.NOT_JSON),
        (with_price('231.4, "x": {"a": 1, "a": 2}'), Reason.NOT_JSON),
        (row(name="A\x00B"), Reason.BAD_TEXT),
        (row(extra="A\x00B"), Reason.BAD_TEXT),
        (row(name="\ud800"), Reason.BAD_TEXT),
        (f'[{ROW[:-1]}, "\\udfff": 1}}]', Reason.BAD_TEXT),
        ("[" + ",".join([ROW] * 900) + "]", Reason.DUPLICATE_ROW),
        ("[" + " " * 100_001 + "]", Reason.TOO_LARGE),
    ],
)  # fmt: skip
def test_an_answer_that_is_wrong_as_a_whole_is_refused(body: str | bytes, expected: Reason) -> None:
    """Each with its own reason (F-D1, F-D2, F-D12)."""
    assert reason(judge(body)) is expected


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json; charset=utf-8", None),
        ("APPLICATION/JSON", None),
        ("application/problem+json", None),
        (None, None),
        ("text/html; charset=utf-8", Reason.HTML),
        ("application/xhtml+xml", Reason.HTML),
        ("text/csv", Reason.CONTENT_TYPE),
        ("application/octet-stream", Reason.CONTENT_TYPE),
    ],
)
def test_the_content_type_is_looked_at_first(content_type: str | None, expected: Reason | None) -> None:
    """Even where the body would do."""
    assert reason(judge(f"[{ROW}]", content_type=content_type)) is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"price": ...}, Reason.MISSING_FIELD),
        ({"volume": ...}, Reason.MISSING_FIELD),  # nullable, but not there
        ({"symbol": ...}, Reason.MISSING_FIELD),
        ({"price": ..., "lastPrice": 231.4}, Reason.MISSING_FIELD),  # renamed
        ({"price": "231.40"}, Reason.WRONG_TYPE),
        ({"price": None}, Reason.WRONG_TYPE),
        ({"price": True}, Reason.WRONG_TYPE),
        ({"price": [1]}, Reason.WRONG_TYPE),
        ({"price": {}}, Reason.WRONG_TYPE),
        ({"price": ""}, Reason.WRONG_TYPE),
        ({"name": 5}, Reason.WRONG_TYPE),
        ({"timestamp": 1784750401.5}, Reason.WRONG_TYPE),
        ({"price": 0}, Reason.OUT_OF_BOUNDS),
        ({"price": -1}, Reason.OUT_OF_BOUNDS),
        ({"price": 10000001}, Reason.OUT_OF_BOUNDS),
        ({"volume": -0.5}, Reason.OUT_OF_BOUNDS),
        ({"name": "x" * 301}, Reason.OUT_OF_BOUNDS),
        ({"timestamp": 2**63}, Reason.OUT_OF_BOUNDS),
        ({"timestamp": 1e28}, Reason.OUT_OF_BOUNDS),  # more digits than a Decimal divides
        ({"symbol": "MSFT"}, Reason.WRONG_KEY),
        ({"symbol": "aapl"}, Reason.WRONG_KEY),
        ({"symbol": None}, Reason.WRONG_KEY),
        ({"symbol": ["AAPL"]}, Reason.WRONG_KEY),
        ({"timestamp": 0}, Reason.NO_SOURCE_TIME),
        ({"timestamp": 1784750401 + 86400}, Reason.FUTURE_SOURCE),
    ],
)  # fmt: skip
def test_a_row_that_is_wrong_is_refused(fields: dict[str, Any], expected: Reason) -> None:
    """Missing, renamed, mistyped, out of bounds, about another key, from the future (F-D9, F-D11, F-D17)."""
    found = judge(row(**fields))

    assert reason(found) is expected
    assert isinstance(found, Failure)
    assert found.blame is Blame.DATA


def test_the_field_and_what_it_holds_are_named() -> None:
    """So that whoever reads the alarm knows what drifted."""
    found = judge(row(price="231.40"))

    assert isinstance(found, Failure)
    assert found.field == "price"
    assert found.detail == '"price": "231.40" (text), but the column says numeric'


def test_details_are_bounded_and_without_secrets() -> None:
    """Whatever the upstream sends back."""
    secret = judge(row(price="postgresql://u:hunter2secret@h/d"))
    long = judge(row(price="x" * 50_000))
    odd = judge(row(price="a\nb\x1b[31m"))

    assert isinstance(secret, Failure)
    assert "hunter2secret" not in secret.detail
    assert isinstance(long, Failure)
    assert len(long.detail) <= 300
    assert isinstance(odd, Failure)
    assert odd.detail.isprintable()


def test_an_empty_answer_means_that_there_is_no_such_key() -> None:
    """Or a failure, where the type says so."""
    assert judge("[]") == Missing()
    assert reason(judge("[]", definition=type_of(QUOTE, answer={"empty": "rejected"}))) is Reason.EMPTY


def test_null_and_empty_are_taken_only_where_the_type_says_so() -> None:
    """As NULL."""
    found = judge(row(volume=None, name=""))

    assert isinstance(found, Value)
    assert (found.rows[0]["volume"], found.rows[0]["name"]) == (None, None)


def test_an_added_field_is_accepted_and_told() -> None:
    """Not stored; and not told where the type knows it."""
    found = judge(row(pe=31.2, eps=7.4))
    known = judge(row(pe=31.2), definition=type_of(QUOTE, answer={"ignore": ["pe"]}))

    assert isinstance(found, Value)
    assert found.added_fields == ("eps", "pe")
    assert "pe" not in found.rows[0]
    assert isinstance(known, Value)
    assert known.added_fields == ()


@pytest.mark.parametrize("text", ["231.4", "231.40", "2314e-1", "0.02314E4", "231.400000000000000000000"])
def test_equal_content_has_an_equal_hash(text: str) -> None:
    """However the number is written, and in whatever order fields and rows come."""
    fields = list(json.loads(f"[{ROW}]")[0].items())
    turned = f"[{json.dumps(dict(reversed(fields)))}]".replace("231.4", text)
    first, second = judge(f"[{ROW}]"), judge(turned)

    assert isinstance(first, Value)
    assert isinstance(second, Value)
    assert first.content_hash == second.content_hash


def test_other_content_has_another_hash() -> None:
    """By one digit, or by null."""
    hashes = {
        found.content_hash
        for body in (row(), row(price=231.41), row(name=""), row(volume=None))
        if isinstance(found := judge(body), Value)
    }

    assert len(hashes) == 4


def test_no_digit_is_lost() -> None:
    """Numbers never become floats."""
    exact = "0.1234567890123456789012345678901234567891"
    found = judge(with_price(exact))

    assert isinstance(found, Value)
    assert found.rows[0]["price"] == exact


# ── many keys in one answer ──


def batch(*symbols: Any) -> str:
    return json.dumps([{**json.loads(ROW), "symbol": symbol} for symbol in symbols])


def test_a_batch_is_split_by_key() -> None:
    """Who is not in the answer is missing alone."""
    found = validate(QUOTES, ["A", "B", "C"], batch("C", "A").encode(), content_type=None, now=NOW)

    assert isinstance(found["A"], Value)
    assert found["B"] == Missing()
    assert isinstance(found["C"], Value)


def test_one_bad_row_fails_its_key_alone() -> None:
    """The others are stored."""
    rows = json.loads(batch("A", "B"))
    rows[0]["price"] = "x"
    found = validate(QUOTES, ["A", "B"], json.dumps(rows).encode(), content_type=None, now=NOW)

    assert reason(found["A"]) is Reason.WRONG_TYPE
    assert isinstance(found["B"], Value)


def test_a_stranger_in_a_batch_is_the_wrong_key_of_who_is_missing() -> None:
    """Not of those who were answered."""
    found = validate(QUOTES, ["A", "B"], batch("A", "X").encode(), content_type=None, now=NOW)

    assert isinstance(found["A"], Value)
    assert reason(found["B"]) is Reason.WRONG_KEY


def test_a_batch_without_any_row_blames_nobodys_key() -> None:
    """A comma-joined list on a path for one symbol answers [] too."""
    found = validate(QUOTES, ["A", "B"], b"[]", content_type=None, now=NOW)

    assert list(found) == ["A", "B"]
    for one in found.values():
        assert isinstance(one, Singly)
        assert one.endpoint
        assert one.detail.startswith("empty for 2 keys together: ")


def test_an_answer_that_is_refused_as_a_whole_blames_nobodys_key() -> None:
    """Each key is asked for alone; the endpoint may be well."""
    found = validate(QUOTES, ["A", "B"], b"<html>", content_type=None, now=NOW)

    for one in found.values():
        assert isinstance(one, Singly)
        assert not one.endpoint
        assert one.detail.startswith("html for 2 keys together: ")


# ── sets and series ──


def days(*rows: tuple[str, Any]) -> str:
    return json.dumps([{"symbol": "AAPL", "date": date, "close": close} for date, close in rows])


def test_rows_of_a_series_are_told_apart_by_their_row_key() -> None:
    """Twice the same day is refused; the newest day is the source time."""
    series = type_of(PRICES)
    found = judge(days(("2026-07-20", 1), ("2026-07-21", 2)), definition=series)

    assert isinstance(found, Value)
    assert found.source_at == datetime(2026, 7, 21, tzinfo=UTC)
    assert reason(judge(days(("2026-07-20", 1), ("2026-07-20", 2)), definition=series)) is Reason.DUPLICATE_ROW


def test_the_order_of_rows_does_not_matter_to_the_hash() -> None:
    """A set is a set."""
    series = type_of(PRICES)
    first = judge(days(("2026-07-20", 1), ("2026-07-21", 2)), definition=series)
    second = judge(days(("2026-07-21", 2), ("2026-07-20", 1)), definition=series)

    assert isinstance(first, Value)
    assert isinstance(second, Value)
    assert first.content_hash == second.content_hash


def test_more_than_ten_thousand_rows_are_too_many() -> None:
    """Whatever the bytes."""
    large = type_of(PRICES, fetch={"body_bytes_max": 10_000_000})

    assert reason(judge("[" + ",".join(["{}"] * 10_001) + "]", definition=large)) is Reason.TOO_LARGE


def test_the_next_event_is_the_first_that_is_not_over() -> None:
    """Dates that are past, null or empty do not count; a date is over when its day is."""
    event = {"field": "date", "format": "date", "zone": "America/New_York"}
    series = type_of(
        PRICES, answer={"rule": "after_event", "event": event, "kind": "set", "source_time": None, "future_max": None}
    )
    found = judge(days(("2026-07-21", 1), ("2026-07-22", 2), ("2026-10-30", 3)), definition=series)

    assert isinstance(found, Value)
    assert found.event_at == datetime(2026, 7, 23, 4, tzinfo=UTC)


def test_rows_are_found_where_the_type_says() -> None:
    """And an error object is one also there."""
    nested = type_of(QUOTE, answer={"rows": "data.items"}, sample={"body": f'{{"data": {{"items": [{ROW}]}}}}'})

    assert isinstance(judge(f'{{"data": {{"items": [{ROW}]}}, "error": null}}', definition=nested), Value)
    assert reason(judge('{"data": {"items": []}, "error": "no"}', definition=nested)) is Reason.ERROR_OBJECT
    assert judge('{"data": {"items": []}}', definition=nested) == Missing()
    assert reason(judge('{"data": 5}', definition=nested)) is Reason.WRONG_SHAPE


# ── transforms ──


def test_a_transform_makes_rows_of_an_odd_answer() -> None:
    """What it makes is checked like any other answer."""
    odd = type_of(QUOTE, answer={"transform": "turn"})
    turn: dict[str, Transform] = {"turn": lambda document, keys: [{**document[key], "symbol": key} for key in keys]}
    inner = json.loads(ROW)
    del inner["symbol"]

    assert isinstance(judge(json.dumps({"AAPL": inner}), definition=odd, transforms=turn), Value)
    assert (
        reason(judge(json.dumps({"AAPL": {**inner, "price": "x"}}), definition=odd, transforms=turn))
        is Reason.WRONG_TYPE
    )
    assert reason(judge(json.dumps({"MSFT": inner}), definition=odd, transforms=turn)) is Reason.WRONG_SHAPE
    assert reason(judge(json.dumps({"AAPL": inner}), definition=odd)) is Reason.WRONG_SHAPE


# ── other columns ──


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ({"type": "integer"}, 5, 5),
        ({"type": "integer"}, 2**31, Reason.OUT_OF_BOUNDS),
        ({"type": "double"}, 0.1, 0.1),
        ({"type": "double", "min": 0}, -0.1, Reason.OUT_OF_BOUNDS),
        ({"type": "boolean"}, False, False),
        ({"type": "boolean"}, 0, Reason.WRONG_TYPE),
        ({"type": "date"}, "2026-07-22", "2026-07-22"),
        ({"type": "date", "min": "2026-07-23"}, "2026-07-22", Reason.OUT_OF_BOUNDS),
        ({"type": "date", "nullable": True, "empty_is_null": True}, "", None),
        ({"type": "timestamptz", "zone": "America/New_York"}, "2026-07-22 09:00:00", "2026-07-22T13:00:00+00:00"),
        ({"type": "timestamptz", "format": "unix_millis"}, 1784750401000, "2026-07-22T20:00:01+00:00"),
        ({"type": "timestamptz"}, "yesterday", Reason.WRONG_TYPE),
        ({"type": "jsonb"}, {"a": [1, 0.5, None, "x"]}, {"a": [1, 0.5, None, "x"]}),
        ({"type": "jsonb"}, [2**64], Reason.BAD_NUMBER),
        ({"type": "jsonb", "max_length": 10}, ["x" * 20], Reason.OUT_OF_BOUNDS),
        ({"type": "text", "one_of": ["FY", "Q1"]}, "Q1", "Q1"),
        ({"type": "text", "one_of": ["FY", "Q1"]}, "Q5", Reason.OUT_OF_BOUNDS),
        ({"type": "numeric", "from": ["inner", "deep"]}, ..., "7"),
    ],
)  # fmt: skip
def test_each_type_takes_its_own_values_only(column: dict[str, Any], value: Any, expected: Any) -> None:
    """And nothing that merely looks like one."""
    definition = type_of(QUOTE, columns={"extra": column})
    body = row(**({"inner": {"deep": 7}} if value is ... else {"extra": value}))
    found = judge(body, definition=definition)

    assert (found.rows[0]["extra"] if isinstance(found, Value) else reason(found)) == expected


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_not_json(encoding: str) -> None:
    """Every other byte is NUL (R14): 0.5.0 said that it was cut off."""
    [found] = validate(QUOTES, ["A"], batch("A").encode(encoding), content_type=None, now=NOW).values()
    assert isinstance(found, Failure)
    assert found.reason is Reason.NOT_JSON
