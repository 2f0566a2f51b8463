"""L13: the page about roles names every function that runs as its owner, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import livewell

ROOT = Path(__file__).parents[2]


def test_the_page_about_roles_names_every_definer_function() -> None:
    """Pages refer to this table and state no number.

    SECURITY.md said three when there were fifteen.
    """
    written = {
        path.stem
        for path in Path(livewell.__file__).parent.rglob("sql/functions/**/*.sql")
        if re.search(r"(?m)^SECURITY DEFINER", path.read_text())
    }
    page = (ROOT / "docs" / "reference" / "roles.md").read_text()
    table = page.partition("## Functions that run as their owner")[2].partition("\n## ")[0]

    named = {name for line in table.splitlines() if line.startswith("| `") for name in _first_cell(line)}

    assert len(written) > 10
    assert named == written


def _first_cell(line: str) -> list[str]:
    return re.findall(r"`livewell\.(\w+)`", line.split("|")[1])
