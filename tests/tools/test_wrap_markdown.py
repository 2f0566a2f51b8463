"""The program that wraps pages touches prose and nothing else."""

from __future__ import annotations

import pytest

from tools.wrap_markdown import can_be_broken, wrapped

WORDS = "word " * 40


def test_a_paragraph_is_wrapped_and_stays_as_it_is_the_second_time() -> None:
    """The same words in the same order."""
    once = wrapped(WORDS)
    assert max(map(len, once.split("\n"))) <= 100
    assert once.split() == WORDS.split()
    assert wrapped(once) == once


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{WORDS}\n{WORDS}\n```",
        f"| {WORDS}| {WORDS}|",
        f"# {WORDS}",
        f"<!-- {WORDS}-->",
        f"Before.\n\n    {WORDS}\n    {WORDS}",
        f"{WORDS} \n{WORDS}",
    ],
    ids=["code block", "table", "heading", "html", "drawing", "hard break"],
)
def test_what_is_no_prose_stays(text: str) -> None:
    """Also when it is longer than any line may be."""
    assert wrapped(text) == text


def test_items_and_footnotes_keep_their_indentation() -> None:
    """Or the second line would be a paragraph of its own."""
    page = wrapped(f"- {WORDS}\n- short\n\n1. {WORDS}\n\n[^1]: {WORDS}").split("\n")
    assert page[1].startswith("  word")
    assert "- short" in page
    assert page[page.index(next(line for line in page if line.startswith("1. "))) + 1].startswith("   word")
    assert page[page.index(next(line for line in page if line.startswith("[^1]"))) + 1].startswith("    word")


def test_a_code_span_is_never_broken_and_no_line_begins_with_markup() -> None:
    """`livewell types apply FILE` is found by a search; a minus sign does not become a list."""
    span = "`livewell types apply quote.toml profile.toml`"
    page = wrapped(f"{'a' * 80} {span} {'b' * 60} - {'c' * 20}").split("\n")
    assert any(span in line for line in page)
    assert not any(line.startswith("- ") for line in page)


def test_one_long_word_cannot_be_broken() -> None:
    """So it is not too long."""
    assert not can_be_broken("https://example.com/" + "a" * 200)
    assert can_be_broken(WORDS)
