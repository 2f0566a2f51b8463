"""The documents name only what exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
FAULT = re.compile(r"\bF-[A-Z]\d+\b")


def test_every_test_that_a_promise_names_exists() -> None:
    """docs/guarantees.md names tests by file and function."""
    named = NAMED_TEST.findall((ROOT / "docs/guarantees.md").read_text())
    missing = [
        f"{file}::{function}"
        for file, function in named
        if not (ROOT / file).exists() or (function and f"def {function}(" not in (ROOT / file).read_text())
    ]
    assert len(named) > 15
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    """The other pages name tests too."""
    named = NAMED_TEST.findall(page.read_text())
    assert [
        f"{file}::{function}"
        for file, function in named
        if not (ROOT / file).exists() or (function and f"def {function}(" not in (ROOT / file).read_text())
    ] == []


def test_every_fault_code_that_a_promise_names_has_a_scenario() -> None:
    """A code without a scenario would be a promise without a proof."""
    scenarios = "\n".join(path.read_text() for path in (ROOT / "tests/faults/scenarios").glob("*.py"))
    codes = set(FAULT.findall((ROOT / "docs/guarantees.md").read_text()))
    assert [code for code in sorted(codes) if f'CODE = "{code}"' not in scenarios] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    """Relative links point at files that exist."""
    assert [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []
