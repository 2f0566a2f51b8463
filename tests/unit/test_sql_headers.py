"""The head of a function's file says who calls it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import livewell

FILES = {path.stem: path for path in Path(livewell.__file__).parent.rglob("sql/functions/**/*.sql")}
CALLED_BY = re.compile(r"^-- Called by:([^\n]*(?:\n--  +[^\n]*)*)", re.M)


@cache
def bodies() -> dict[str, str]:
    """The statement of each file, without its comments."""
    return {
        name: re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8").partition("CREATE OR REPLACE")[2])
        for name, path in FILES.items()
    }


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_function_that_calls_it_is_named(name: str) -> None:
    """By name, or as "many functions"; seen failing for 55 of 303 files."""
    callers = {
        caller for caller, body in bodies().items() if caller != name and re.search(rf"livewell\.{name}\s*\(", body)
    }
    said = CALLED_BY.search(FILES[name].read_text(encoding="utf-8"))
    assert not callers or said is not None, f"{FILES[name]} has no line '-- Called by:'"
    if said is not None and "many functions" not in said[1]:
        assert callers <= set(re.findall(r"\w+", said[1]))
