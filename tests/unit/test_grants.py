"""The rights of a package are one matrix, roles × objects, that a person can read (see grant_rights.sql)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import livewell

PACKAGES = Path(livewell.__file__).parent
ROLES = ["api", "hub", "operate", "worker", "readonly"]
MATRICES = ["alerts", "apps/contacts", "db", "exports", "limits", "operations", "outbox", "queue", "schedule", "server"]
CELL = re.compile(r"-|(?:[rawdUX](?:\([a-z_,]+\))?)+")


def matrix(package: str) -> list[list[str]]:
    """The lines of the matrix, the head first, cut into words.

    Comments and what is outside are left out.
    """
    text = (PACKAGES / package / "sql" / "grants.sql").read_text()
    [inside] = re.findall(r"SELECT livewell\.grant_rights\(\$matrix\$\n(.*?)\$matrix\$\);", text, re.DOTALL)
    return [line.split() for line in inside.splitlines() if line and not line.startswith("--")]


@pytest.mark.parametrize("package", MATRICES)
def test_every_right_is_in_the_matrix(package: str) -> None:
    """No GRANT beside it; the same columns everywhere; one line per object."""
    head, *lines = matrix(package)
    text = (PACKAGES / package / "sql" / "grants.sql").read_text()

    assert re.findall(r"^\s*GRANT\b", text, re.MULTILINE) == []
    assert head == ["object", *ROLES]
    assert [line for line in lines if len(line) != len(ROLES) + 2 or not all(map(CELL.fullmatch, line[2:]))] == []
    assert len({tuple(line[:2]) for line in lines}) == len(lines)


@pytest.mark.parametrize("package", MATRICES)
def test_a_line_that_gives_nobody_anything_is_not_there(package: str) -> None:
    """What is the owner's alone is not in the matrix."""
    assert [line for line in matrix(package) if set(line[2:]) == {"-"}] == []


@pytest.mark.parametrize("package", MATRICES)
def test_functions_of_the_matrix_exist(package: str) -> None:
    """In this package or in another."""
    names = {path.stem for path in PACKAGES.rglob("sql/functions/**/*.sql")}

    assert [name for kind, name, *_ in matrix(package) if kind == "function" and name not in names] == []
