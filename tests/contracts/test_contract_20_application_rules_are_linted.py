"""Contract 20: the rules that the code lives by are linted, with every run of the tests.

Imports point down only. psycopg and the HTTP client have one home each. No instant that could be
compared is made in Python. No statement is put together in an f-string. No failure is swallowed.

import-linter reads the same layers in `make check`; here each rule is also seen to find what it is
for. Broken once, and kept broken below: one bad line for each rule.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import livewell
from tests.support.source import parse

SOURCE = Path(livewell.__file__).parent
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
HOMES = {"psycopg": "db", "psycopg_pool": "db", "aiohttp": "outbound"}
# The test kit and the simulators are the world outside; an upstream has a clock of its own. sync
# takes a caller's own psycopg connection, which it knows by name only.
OUTSIDE = {"testing", "apps"}
CLOCKS = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("time", "time"),
    ("time", "time_ns"),
}
STATEMENTS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "ALTER ", "CREATE ", "DROP ")

# Each with its reason; one that is no longer needed fails too.
EXCEPTIONS = {
    (
        "no statement is put together",
        "db/embedded/cluster.py",
    ): "the name is a constant of that file, and CREATE DATABASE takes no parameter",
    (
        "no instant is made in Python",
        "operations/doctor/server.py",
    ): "it compares this machine's clock with the database's",
    (
        "no instant is made in Python",
        "server/dashboard/rendering.py",
    ): "it says when a panel was read; nothing is compared with it",
    (
        "no instant is made in Python",
        "outbox/sinks/webhook.py",
    ): "a signature says when it was made, and the receiver compares it with its own clock",
    (
        "no instant is made in Python",
        "exports/artifacts/s3.py",
    ): "a signature says when it was made, and the store compares it with its own clock",
    (
        "no instant is made in Python",
        "server/answers/problems.py",
    ): "Retry-After is a hint; the database decides when the day is over",
    (
        "no instant is made in Python",
        "server/findings.py",
    ): "it says when the doctor was asked; nothing is compared with it",
    ("no statement is put together", "apps/tour/ledger.py"): "four names of the tour's own, from a tuple in that file",
}

Rule = Callable[[str, str], list[str]]


def layers() -> dict[str, int]:
    """Which part stands on which, from the top: the same list that import-linter reads."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    [stacked] = [contract["layers"] for contract in contracts if contract.get("containers") == ["livewell"]]
    return {part.strip(): place for place, line in enumerate(stacked) for part in line.replace("|", ":").split(":")}


def part_of(file: Path) -> str:
    """The package or module below livewell that a file belongs to."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(source: str) -> Iterator[str]:
    """Every module that is named, wherever in the file."""
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "livewell":
            yield from (f"livewell.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def imports_upwards(part: str, source: str) -> list[str]:
    """Imports of a part that stands above this one."""
    order = layers()
    ours = [name.split(".")[1] for name in imported(source) if name.startswith("livewell.")]
    return [name for name in ours if order.get(name, order[part]) < order[part]]


def strangers_at_home(part: str, source: str) -> list[str]:
    """Libraries that only another part may import."""
    if part in OUTSIDE:
        return []
    return [name for name in imported(source) if HOMES.get(name.split(".")[0], part) != part]


def instants(part: str, source: str) -> list[str]:
    """Looks at the clock of this machine."""
    if part in OUTSIDE:
        return []
    looks = (
        node for node in ast.walk(parse(source)) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )
    return [ast.unparse(node) for node in looks if (ast.unparse(node.value), node.attr) in CLOCKS]


def composed_statements(_: str, source: str) -> list[str]:
    """f-strings that begin like SQL and have a value in them."""
    texts = (node for node in ast.walk(parse(source)) if isinstance(node, ast.JoinedStr) and node.values)
    starts = (
        (node, node.values[0]) for node in texts if any(isinstance(one, ast.FormattedValue) for one in node.values)
    )
    return [
        ast.unparse(node)
        for node, first in starts
        if isinstance(first, ast.Constant) and str(first.value).lstrip().upper().startswith(STATEMENTS)
    ]


def swallowed(_: str, source: str) -> list[str]:
    """Handlers that catch everything and do nothing."""
    handlers = (node for node in ast.walk(parse(source)) if isinstance(node, ast.ExceptHandler))
    return [
        ast.unparse(node)
        for node in handlers
        if (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and all(isinstance(line, ast.Pass | ast.Continue) for line in node.body)
    ]


RULES: dict[str, tuple[Rule, str, str]] = {
    "imports point down only": (imports_upwards, "limits", "def f():\n    from livewell.queue.job import Job"),
    "one home for each driver": (strangers_at_home, "refresh", "import aiohttp"),
    "no instant is made in Python": (instants, "queue", "from datetime import datetime\nat = datetime.now()"),
    "no statement is put together": (composed_statements, "queue", 'call(f"SELECT * FROM {table}")'),
    "no failure is swallowed": (swallowed, "refresh", "try:\n    f()\nexcept Exception:\n    pass"),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rule_holds_in_every_file(name: str) -> None:
    """For all of the product."""
    rule, _, _ = RULES[name]
    files = [file for file in sorted(SOURCE.rglob("*.py")) if part_of(file) != "__init__"]
    found = {str(file.relative_to(SOURCE)) for file in files if rule(part_of(file), file.read_text())}
    assert len(files) > 100
    assert found == {file for excepted, file in EXCEPTIONS if excepted == name}


@pytest.mark.parametrize("name", RULES)
def test_a_line_that_breaks_the_rule_is_noticed(name: str) -> None:
    """Broken on purpose."""
    rule, part, line = RULES[name]
    assert len(rule(part, line)) == 1


def test_no_part_escapes_the_layers() -> None:
    """Whoever adds a package says where it stands, or import-linter would not look at it."""
    parts = {part_of(file) for file in SOURCE.rglob("*.py")} - {"__init__", "__main__"}
    assert parts <= set(layers())
