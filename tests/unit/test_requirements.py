"""docs/requirements.md lists every code that is cited, and the tests of each exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/requirements.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([A-Z]+\d[A-Z\d, ]*) \| .+ \|$", re.MULTILINE)
CITED = re.compile(r"(?<![-\w/.{$])((?:GU|[BEGHLMOQRSTWX])[1-9]\d?)(?![-\w/}]|\.\w)")
DATA = re.compile(r"(?<![\"'])([\"'])[A-Z]+\d+\1(?![\"'])")  # a text that is nothing but a code
CODES = {code for cell in ROW.findall(PAGE) for code in cell.split(", ")}
WHERE = ("src", "tests", "bench", "examples", "docs")


def cited(path: Path) -> set[str]:
    """The codes that a file cites."""
    text = DATA.sub("", path.read_text(encoding="utf-8"))
    return set(CITED.findall(text))


def files() -> list[Path]:
    """Source, tests and pages of today; fixtures of old releases are theirs."""
    found = [path for folder in WHERE for path in (ROOT / folder).rglob("*")]
    return [
        path
        for path in [*found, *ROOT.glob("*.md")]
        if path.suffix in (".py", ".sql", ".md", ".js", ".toml") and "upgrade" not in path.parts
    ]


def test_every_code_that_is_cited_is_listed() -> None:
    """Seen failing on 0.6.0: 79 source files cited codes that stood nowhere in the repository."""
    unknown = {
        f"{path.relative_to(ROOT)}: {code}" for path in files() for code in cited(path) - CODES if _is_ours(code, path)
    }
    assert sorted(unknown) == []


def _is_ours(code: str, path: Path) -> bool:
    """Rules of ruff look like codes where they are switched off."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if re.search(rf"\b{code}\b", line)]
    return not all("noqa" in line for line in lines)


def test_no_code_is_listed_twice() -> None:
    """One code, one meaning."""
    listed = [code for cell in ROW.findall(PAGE) for code in cell.split(", ")]
    assert len(listed) > 100
    assert sorted(listed) == sorted(set(listed))


@pytest.mark.parametrize("row", [row for row in PAGE.splitlines() if ROW.match(row)], ids=lambda row: row.split()[1])
def test_every_code_that_is_built_names_its_tests(row: str) -> None:
    """In the last column. Codes of what is not built name none, and claim nothing."""
    coming = row in PAGE.split("## Coming")[1]
    named = re.findall(r"`(tests/[\w/]+\.py)`", row.rsplit(" | ", maxsplit=1)[-1])
    assert bool(named) != coming
    assert [name for name in named if not (ROOT / name).is_file()] == []
