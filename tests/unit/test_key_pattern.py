"""The language of keys: small, linear, and the same to Python's own engine."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livewell.refresh.definition.key_pattern import PatternError, parse

CLASS = st.sampled_from(["[A-Z]", "[a-z0-9]", "[A-Z0-9.^=-]", "[-_]", "[0-9]", "A", "x", "\\.", "-", "/"])
COUNT = st.sampled_from(["", "?", "{1}", "{2}", "{1,3}", "{0,4}", "{3,5}"])
PATTERN = st.lists(st.tuples(CLASS, COUNT).map("".join), min_size=1, max_size=6).map("".join)


@settings(max_examples=500, deadline=None)
@given(PATTERN, st.text("AZaz09.^=-_x/", max_size=12))
def test_it_agrees_with_a_regular_expression(pattern: str, key: str) -> None:
    """On every key, for every pattern that is allowed."""
    try:
        parsed = parse(pattern)
    except PatternError:
        return

    assert parsed.fits(key) == (re.fullmatch(pattern, key) is not None and key != "")


@pytest.mark.parametrize(
    "pattern", ["[A-Z0-9.^=-]{1,20}", "US[0-9]{10}", "[A-Z]{3}/[A-Z]{3}", "[0-9]{1,3}\\.[0-9]{1,3}"]
)
def test_ordinary_patterns_are_allowed(pattern: str) -> None:
    """As type files have them."""
    assert parse(pattern).text == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "(a+)+$",
        "a|b",
        "^A",
        "A$",
        ".*",
        "A*",
        "A+",
        "[^A]",
        "[]",
        "[A",
        "[Z-A]",
        "[A-z]",
        "[a\\]",
        "[[:alpha:]]",
        "A{3,1}",
        "A{0}",
        "A{1,999}",
        "A{,3}",
        "A{1,}",
        "(?i)A",
        "\\d",
        "\\1",
        "\\",
        "Ä",
        "A{200}B",
        "A" * 60,
        "A?B?",
        "[A--]",
        "[a-Z]",
        "\x00",
        "A\n",
        "***=A",
        "[A-9]",
    ],
)
def test_everything_else_is_refused(pattern: str) -> None:
    """Groups, alternatives, anchors, wildcards, unbounded repeats, and what only looks like a pattern."""
    with pytest.raises(PatternError):
        parse(pattern)


def test_the_worst_pattern_is_fast() -> None:
    """What would take a backtracking engine for ever."""
    pattern = parse("A{0,7}" * 28 + "B")
    begun = time.perf_counter()

    assert not pattern.fits("A" * 200)
    assert time.perf_counter() - begun < 1
