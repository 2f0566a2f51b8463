"""Functions broken on purpose.

The words to replace are found however the file is wrapped, and missed if they are gone.
"""

from __future__ import annotations

import pytest

from tests.support.variants import changed

SOURCE = """SELECT j.id
    FROM livewell.job j
    WHERE j.state = 'ready' FOR UPDATE"""


@pytest.mark.parametrize(
    "old", ["FROM livewell.job j WHERE j.state = 'ready'", "FROM livewell.job j\n\n  WHERE j.state = 'ready'"]
)
def test_white_space_of_the_old_words_matches_any_white_space(old: str) -> None:
    """A statement may be wrapped anew without touching its variants."""
    assert changed(SOURCE, (old, "FROM nothing")) == "SELECT j.id\n    FROM nothing FOR UPDATE"


@pytest.mark.parametrize("source", ["f(a, g(b))", "f(\n    a, g(\n        b))", "f(a, g(b)\n)"])
def test_white_space_inside_a_bracket_may_be_there_or_not(source: str) -> None:
    """A call is wrapped after its bracket."""
    assert changed(source, ("f(a, g(b))", "1")) == "1"


def test_every_occurrence_is_replaced_by_the_new_words_as_they_are() -> None:
    """What looks like a reference of a pattern is text."""
    assert changed("a (b)  a (b)", ("a (b)", r"\1 \g<0>")) == r"\1 \g<0>  \1 \g<0>"


@pytest.mark.parametrize("old", ["ANY (ARRAY(SELECT 1))", "ANY ( ARRAY(SELECT 1) )"])
def test_white_space_inside_a_parenthesis_may_come_or_go(old: str) -> None:
    """A parenthesis that no longer fits on one line is opened over several."""
    for wrapped in ("x = ANY (ARRAY(SELECT 1))", "x = ANY (\n    ARRAY(\n        SELECT 1\n    )\n)"):
        assert changed(wrapped, (old, "y")) == "x = y"


def test_white_space_around_the_words_stays() -> None:
    """A line that is taken out does not glue its neighbours together."""
    assert changed("BEGIN\n    x := 1;\n    y := 2;", ("    x := 1;\n", "")).split() == ["BEGIN", "y", ":=", "2;"]


@pytest.mark.parametrize("gone", ["FROM livewell.jobs j", "FROMlivewell.job", "select j.id", "", "  "])
def test_words_that_are_not_there_fail(gone: str) -> None:
    """A variant cannot silently become the real thing."""
    with pytest.raises(AssertionError, match="mend the variant"):
        changed(SOURCE, (gone, ""))
