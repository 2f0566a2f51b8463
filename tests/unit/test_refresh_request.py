"""Requests: keys stay in their place, secrets out of everything but the call (F-D19)."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from livewell.errors import InvalidOption
from livewell.refresh.fetch.request import build, with_credential
from tests.support.refresh_types import QUOTE, type_of, upstream_of

FMP = upstream_of()


def test_one_key_and_many() -> None:
    """Each by its own endpoint."""
    quote = type_of(QUOTE)

    assert build(quote, ["^GSPC"], FMP).url == "https://financialmodelingprep.com/stable/quote?symbol=%5EGSPC"
    assert (
        build(quote, ["A", "BRK-B"], FMP).url == "https://financialmodelingprep.com/stable/batch-quote?symbols=A,BRK-B"
    )


@given(st.text(min_size=1, max_size=30))
def test_a_key_never_leaves_its_place(key: str) -> None:
    """Refused, or found again whole as the one parameter."""
    quote = type_of(QUOTE)
    try:
        url = build(quote, [key], FMP).url
    except InvalidOption:
        return
    parts = urlsplit(url)

    assert (parts.netloc, parts.path, parse_qsl(parts.query)) == (
        "financialmodelingprep.com",
        "/stable/quote",
        [("symbol", key)],
    )


@pytest.mark.parametrize(
    "key", ["..", ".", "A\r\nHost: x", "A/../B", "A?x=1", "A#", "A&b=1", "", "A" * 21, "a", "A B", "Ä", "%2e%2e"]
)
def test_a_hostile_key_is_refused(key: str) -> None:
    """By the pattern; and dots alone never stand in a path."""
    in_path = type_of(QUOTE, fetch={"path": "/quote/{key}", "query": None})
    with pytest.raises(InvalidOption):
        build(in_path, [key], FMP)


def test_slashes_in_a_key_are_encoded() -> None:
    """Also where the pattern allows them."""
    pairs = type_of(
        QUOTE, fetch={"path": "/fx/{key}", "query": None, "key_pattern": "[A-Z]{3}/[A-Z]{3}"}, sample={"key": "EUR/USD"}
    )

    assert build(pairs, ["EUR/USD"], FMP).path == "/fx/EUR%2FUSD"


def test_more_keys_than_a_call_takes_are_refused() -> None:
    """And many keys without a batch endpoint."""
    with pytest.raises(InvalidOption, match="51 keys in one call, at most 50"):
        build(type_of(QUOTE), [f"A{n}" for n in range(51)], FMP)
    with pytest.raises(InvalidOption, match="at most 1"):
        build(type_of(QUOTE, fetch={"batch": None}), ["A", "B"], FMP)


def test_the_secret_goes_where_the_upstream_wants_it_and_is_not_shown() -> None:
    """In the header or in the query."""
    headers, query = with_credential(FMP, SecretStr("s3cr3t&x"))
    assert (headers["apikey"].get_secret_value(), query) == ("s3cr3t&x", {})
    assert "s3cr3t" not in repr(headers)

    headers, query = with_credential(upstream_of(upstream={"credential_in": "query:apikey"}), SecretStr("s3cr3t&x"))
    assert (headers, query["apikey"].get_secret_value()) == ({}, "s3cr3t&x")
    assert with_credential(FMP, None) == ({}, {})


@pytest.mark.parametrize("secret", ["", "a\r\nHost: evil", "ключ", "a\x00"])
def test_a_secret_that_would_break_the_request_is_refused(secret: str) -> None:
    """Without showing it."""
    with pytest.raises(InvalidOption) as error:
        with_credential(FMP, SecretStr(secret))

    assert not secret or secret not in str(error.value)
