"""One list says what a reason means, and the browser has its words."""

from __future__ import annotations

import re
from pathlib import Path

import livewell
from livewell.refresh.reasons import MEANING, Reason

MODULE = Path(livewell.__file__).parent / "web" / "client" / "livewell.js"


def test_every_reason_has_a_meaning() -> None:
    """The list is closed, and whole."""
    assert set(MEANING) == set(Reason)


def test_the_browser_says_the_words_of_the_list() -> None:
    """Each word in the table of livewell.js stands once, under the text that the list has for it."""
    table = MODULE.read_text().split("const REASONS = {")[1].split("};")[0]
    rows = [(word, text) for text, words in re.findall(r'"([^"]+)": "([a-z0-9_ ]+)",', table) for word in words.split()]

    assert sorted(rows) == sorted((reason.value, meaning.words) for reason, meaning in MEANING.items())
