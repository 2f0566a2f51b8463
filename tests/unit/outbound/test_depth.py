"""Depth of JSON, told without recursion and in one pass."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livewell.outbound import too_deep


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth(item) for item in value), default=0)
    return 0


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\a'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[]{}"\\a'), inner, max_size=4),
    max_leaves=60,
)


@given(JSON)
def test_it_agrees_with_a_parser(value: Any) -> None:
    """Brackets inside strings, escaped quotes included, do not count."""
    body = json.dumps(value).encode()

    assert [too_deep(body, allowed) for allowed in range(8)] == [depth(value) > allowed for allowed in range(8)]


@pytest.mark.parametrize(
    "body", [b"[" * 10_000_000, b'{"a":' * 2_000_000, b'["' + b"\\" * 9_000_001, b'"' * 10_000_000, b"[]" * 5_000_000]
)
def test_ten_megabytes_of_malice_take_a_moment(body: bytes) -> None:
    """Linear: no recursion error, no quadratic pattern (seconds allowed for a slow machine; 0.4 s here)."""
    started = time.perf_counter()
    assert too_deep(body) == (body[:20] not in (b'["' + b"\\" * 18, b'"' * 20, b"[]" * 10))
    assert time.perf_counter() - started < 10


def test_closing_what_was_never_opened_is_not_deep() -> None:
    """Text that is no JSON gets an answer, and the parser refuses it later."""
    assert not too_deep(b"]" * 1000 + b"[" * 20 + b"]" * 1000)
