"""What an answer gives to ask "has it changed?" with."""

from __future__ import annotations

import pytest

from livewell.refresh.fetch.conditional import Validator, add_validators
from livewell.refresh.result import Missing, Value

VALUE = Value([{"price": "1"}], None, None, b"h", ())
HEADERS = {"etag": ' W/"abc" ', "last-modified": "Mon, 20 Jul 2026 10:00:00 GMT"}


def test_an_answer_about_one_key_keeps_its_validators() -> None:
    """They are asked with the next time."""
    [value] = add_validators({"A": VALUE}, HEADERS).values()

    assert isinstance(value, Value)
    assert (value.etag, value.last_modified) == ('W/"abc"', "Mon, 20 Jul 2026 10:00:00 GMT")
    assert Validator(value.etag, None, b"h").headers == {"If-None-Match": 'W/"abc"'}


def test_an_answer_about_several_keys_has_none() -> None:
    """A validator belongs to the whole answer."""
    results = {"A": VALUE, "B": VALUE}

    assert add_validators(results, HEADERS) == results
    assert add_validators({"A": Missing()}, HEADERS) == {"A": Missing()}


@pytest.mark.parametrize("etag", ["", "x" * 101, '"ä"', '"a\nb"'])
def test_what_cannot_be_sent_back_is_not_kept(etag: str) -> None:
    """Too long, not ASCII, not printable."""
    assert add_validators({"A": VALUE}, {"etag": etag}) == {"A": VALUE}
