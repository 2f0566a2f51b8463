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
DOCS = [page for page in PAGES if page.is_relative_to(ROOT / "docs")]
FAULT = re.compile(r"\bF-[A-Z]\d+\b")
FOOTNOTE = re.compile(r"^\[\^(\w+)\]:", re.MULTILINE)
IN_TABLES = {"docs/contracts.md", "docs/guarantees.md", "docs/requirements.md"}  # tests are their last column
DECISIONS = sorted(ROOT.glob("docs/adr/0*.md"))


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


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    found = {(page.parent / link).resolve() for link in LINK.findall(page.read_text(encoding="utf-8"))}
    return {path for path in found if path.suffix == ".md"}


def test_every_page_is_two_links_away_from_the_index() -> None:
    """A stranger who opens docs/index.md finds everything."""
    first = linked(ROOT / "docs/index.md")
    reached = first.union(*(linked(page) for page in first)) | {ROOT / "docs/index.md"}
    assert [str(page.relative_to(ROOT)) for page in DOCS if page not in reached] == []


def test_the_readme_leads_to_the_index_and_is_short() -> None:
    """The first screen is for what it is; the rest is one link away."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/index.md)" in readme
    assert len(readme.splitlines()) <= 90


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_names_a_test(page: Path) -> None:
    """Tests stand in footnotes, or in the last column of a table; each footnote is used."""
    text = page.read_text(encoding="utf-8")
    body, _, notes = text.partition("\n[^1]: ")
    if str(page.relative_to(ROOT)) in IN_TABLES:
        body = re.sub(r"^\|.*\|$", "", body, flags=re.MULTILINE)
    rows = re.sub(r"^(\|.* )\| [^|]*\|$", r"\1", body, flags=re.MULTILINE)
    assert [line for line in rows.splitlines() if NAMED_TEST.search(line)] == []
    assert set(FOOTNOTE.findall("[^1]: " + notes if notes else "")) == set(re.findall(r"\[\^(\w+)\]", body))


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_every_decision_has_a_date_and_a_status_and_is_in_the_index(page: Path) -> None:
    """The same number in the name, the title and the index; the same date."""
    number = int(page.name[:4])
    title, _, dated, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith(f"# ADR {number}: ")
    date = re.match(r"Date: (\d{4}-\d{2}-\d{2})\. Status: (accepted|replaced|proposed)", dated)
    assert date is not None
    index = (ROOT / "docs/adr/index.md").read_text(encoding="utf-8")
    assert f"| [{number}]({page.name}) | {date[1]} | {date[2]}" in index


def test_the_glossary_names_only_what_exists() -> None:
    """Four places for each word.

    JavaScript, HTTP, Python, SQL. What stands there is found there.
    """
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    source = {
        suffix: "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(f"src/**/*{suffix}")))
        for suffix in (".js", ".py", ".sql")
    }
    places = (source[".js"], source[".py"], source[".py"], source[".sql"])
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| ") and " · " in row]
    words = [row for row in rows if not row[0].startswith("word")]
    missing = [
        f"{row[0]}: {name}"
        for row in words
        for where, text in zip(row[2].split(" · "), places, strict=True)
        for name in re.findall(r"`([^`]+)`", where)
        if not _is_found(name, text)
    ]
    assert len(words) > 80
    assert len({row[0] for row in words}) == len(words)
    assert missing == []


def _is_found(name: str, text: str) -> bool:
    """A path of the package, or a name of which every part is in the text."""
    if (ROOT / "src/livewell" / name).exists():
        return True
    parts = re.findall(r"\w+", name.removeprefix("PUT ").removeprefix("GET ").replace("/v1/", "/"))
    return all(re.search(rf"\b{part}\b", text) for part in parts)


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
    files = (ROOT / "src").rglob("sql/functions/**/*.sql")
    definers = {file.stem for file in files if "\nSECURITY DEFINER\n" in file.read_text()}
    page = (ROOT / "docs/reference/roles.md").read_text()
    part = page.split("## Functions that run as their owner")[1].split("\n## ")[0]
    assert set(re.findall(r"`livewell\.(\w+)`", part)) == definers
