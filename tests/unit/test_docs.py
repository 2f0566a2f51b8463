"""The documents name only what exists."""

import re
from pathlib import Path

import pytest

from livewell.apps.market import TYPES
from livewell.refresh.definition.document import read_file
from livewell.refresh.definition.table import Table

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


def test_every_field_of_a_type_file_is_on_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the readers take out of the shipped files, or look for in them."""
    looked_for: set[str] = set()
    take = Table.take

    def remember(table: Table, name: str) -> object:
        looked_for.add(name)
        return take(table, name)

    monkeypatch.setattr(Table, "take", remember)
    for file in TYPES.glob("*.toml"):
        read_file(file.read_bytes(), file.name)
    told = " ".join(
        re.findall(r"`[^`\n]+`|^\[\w+\]", (ROOT / "docs/reference/type_files.md").read_text(), re.MULTILINE)
    )

    assert len(looked_for) > 50
    assert sorted(name for name in looked_for if not re.search(rf"\b{name}\b", told)) == []


def test_every_function_that_runs_as_its_owner_is_on_the_page_of_roles() -> None:
    """The list of the catalog test, and this page, are the list in the files."""
    files = ROOT.glob("src/livewell/*/sql/functions/**/*.sql")
    definers = {file.stem for file in files if "\nSECURITY DEFINER\n" in file.read_text()}
    page = (ROOT / "docs/reference/roles.md").read_text()
    part = page.split("## Functions that run as their owner")[1].split("\n## ")[0]
    assert set(re.findall(r"`livewell\.(\w+)`", part)) == definers
