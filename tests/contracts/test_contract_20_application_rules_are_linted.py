<<<<<<< HEAD
"""Contract 20: the rules that the code lives by are linted, with every run of the tests: imports point down only, psycopg and the HTTP client have one home each, no instant that could be compared
is made in Python, no statement is put together in an f-string, no failure is swallowed.

import-linter reads the same layers in `make check`; here each rule is also seen to find what it is for. Broken once, and kept broken below: one bad line for each rule.
=======
"""Contract 20: the application's rules are linted: import rules and AST checks run with the tests, not only when somebody remembers.

The import rules are read from pyproject, where import-linter reads them for `make check`, and are checked here by a walk of our own; so are rules that no import shows: no instant from the machine's own clock
(DESIGN rule 1), no SQL made by formatting, no swallowed exception.

Broken once, and kept broken below: a module for each rule that does what it forbids. The clock rule found two real ones when it was written (limits/limiter.py judged Retry-After by the worker's clock).
>>>>>>> b9414fd928bd018feb72c56e9f9a5be6aceeff03
"""

from __future__ import annotations

import ast
<<<<<<< HEAD
import tomllib
from collections.abc import Callable, Iterator
=======
import re
import tomllib
from collections.abc import Iterator
>>>>>>> b9414fd928bd018feb72c56e9f9a5be6aceeff03
from pathlib import Path

import pytest

import livewell

SOURCE = Path(livewell.__file__).parent
<<<<<<< HEAD
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
HOMES = {"psycopg": "db", "psycopg_pool": "db", "aiohttp": "outbound"}
# The test kit and the simulators are the world outside; an upstream has a clock of its own. sync takes a caller's own psycopg connection, which it knows by name only.
OUTSIDE = {"testing", "apps"}
=======
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = PROJECT["tool"]["importlinter"]["contracts"]
LAYERS: list[set[str]] = [
    {name.strip() for name in layer.split(":")}
    for contract in CONTRACTS
    if contract["type"] == "layers"
    for layer in contract["layers"]
]
OWN = {"psycopg": "livewell.db", "psycopg_pool": "livewell.db", "aiohttp": "livewell.outbound"}
# Makers of data and ends of tests: what they stamp is not compared by the product.
CLOCKS_ALLOWED = ("livewell.apps.market.simulator", "livewell.testing")
>>>>>>> b9414fd928bd018feb72c56e9f9a5be6aceeff03
CLOCKS = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("time", "time"),
    ("time", "time_ns"),
}
<<<<<<< HEAD
STATEMENTS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "ALTER ", "CREATE ", "DROP ")

# Each with its reason; one that is no longer needed fails too.
EXCEPTIONS = {
    (
        "no instant is made in Python",
        "limits/limiter.py",
    ): "an upstream's own date becomes a number of seconds; it is compared with nothing that is stored",
    (
        "no statement is put together",
        "db/embedded/cluster.py",
    ): "the name is a constant of that file, and CREATE DATABASE takes no parameter",
    ("no statement is put together", "apps/tour/ledger.py"): "four names of the tour's own, from a tuple in that file",
}

Rule = Callable[[str, str], list[str]]


def layers() -> dict[str, int]:
    """Which part stands on which, from the top: the same list that import-linter reads."""
    contracts = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    [stacked] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return {
        part.strip().removeprefix("livewell."): place for place, line in enumerate(stacked) for part in line.split(":")
    }


def part_of(file: Path) -> str:
    """The package or module below livewell that a file belongs to."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(source: str) -> Iterator[str]:
    """Every module that is named, wherever in the file."""
    for node in ast.walk(ast.parse(source)):
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
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )
    return [ast.unparse(node) for node in looks if (ast.unparse(node.value), node.attr) in CLOCKS]


def composed_statements(_: str, source: str) -> list[str]:
    """f-strings that begin like SQL and have a value in them."""
    texts = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr) and node.values)
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
    handlers = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler))
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
=======
STATEMENT = re.compile(r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|GRANT)\b")


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("livewell", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        yield name, path.read_text()


def place_of(module: str) -> int | None:
    """The layer of a module, 0 at the top."""
    return next(
        (n for n, layer in enumerate(LAYERS) for name in layer if module == name or module.startswith(f"{name}.")), None
    )


def imported(tree: ast.AST) -> set[str]:
    """What a module imports when it runs; TYPE_CHECKING blocks too, which is stricter than needed."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module}
    return found


def broken_imports(module: str, text: str) -> list[str]:
    """Imports upwards, and of a library that another package owns."""
    mine, found = place_of(module), []
    for name in imported(ast.parse(text)):
        theirs = place_of(name)
        if mine is not None and theirs is not None and theirs < mine:
            found.append(f"{module} imports {name}, which is above it")
        owner = OWN.get(name.split(".")[0])
        if owner is not None and not f"{module}.".startswith(f"{owner}."):
            found.append(f"{module} imports {name}, which only {owner} may")
    return found


def broken_rules(module: str, text: str) -> list[str]:
    """What no import shows."""
    found, lines = [], text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            clock = (node.func.value.id, node.func.attr)
            if clock in CLOCKS and not module.startswith(CLOCKS_ALLOWED):
                found.append(f"{module}:{node.lineno} reads the machine's clock: {'.'.join(clock)}()")
        if (
            isinstance(node, ast.ExceptHandler)
            and _is_broad(node)
            and all(isinstance(one, ast.Pass) for one in node.body)
        ):
            found.append(f"{module}:{node.lineno} swallows every exception")
        # A line that says why it may (noqa: S608 - …) has been looked at by somebody.
        if isinstance(node, ast.JoinedStr) and _formats_sql(node) and "noqa: S608 - " not in lines[node.lineno - 1]:
            found.append(f"{module}:{node.lineno} makes SQL by formatting")
    return found


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (
        isinstance(handler.type, ast.Name) and handler.type.id in ("Exception", "BaseException")
    )


def _formats_sql(text: ast.JoinedStr) -> bool:
    """An f-string that begins like a statement and puts a value into it that is no CONSTANT of a module."""
    first = text.values[0] if text.values else None
    if not (isinstance(first, ast.Constant) and STATEMENT.match(str(first.value))):
        return False
    values = [part.value for part in text.values if isinstance(part, ast.FormattedValue)]
    return any(not (isinstance(value, ast.Name) and value.id.lstrip("_").isupper()) for value in values)


def test_imports_point_down_and_libraries_have_one_owner() -> None:
    """Every module, against the layers of pyproject."""
    assert [fault for module, text in modules() for fault in broken_imports(module, text)] == []


def test_every_package_has_a_layer() -> None:
    """A package that the rules do not name could import anything."""
    packages = {f"livewell.{path.name}" for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert {name for name in packages if place_of(name) is None} == set()


def test_the_linters_rules_name_every_package_that_must_not_import_a_library() -> None:
    """A forbidden-modules contract is a list: one that was forgotten in it is free."""
    packages = {f"livewell.{path.name}" for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    for library, owner in (("psycopg", "livewell.db"), ("aiohttp", "livewell.outbound")):
        [contract] = [one for one in CONTRACTS if library in one.get("forbidden_modules", ())]
        # testing is above outbound and makes servers with nothing but asyncio; import rules above check it all the same
        assert packages - set(contract["source_modules"]) - {owner, "livewell.testing"} == set(), library


def test_no_module_breaks_a_rule_that_no_import_shows() -> None:
    """Clocks, swallowed exceptions, SQL by formatting."""
    assert [fault for module, text in modules() for fault in broken_rules(module, text)] == []


def test_make_check_and_the_landing_script_run_the_linters() -> None:
    """So nothing lands without them."""
    makefile = (ROOT / "Makefile").read_text()
    check = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    assert {tool for tool in ("ruff check", "mypy", "lint-imports", "squawk") if tool not in check} == set()
    assert "make check" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("livewell.queue.claim", "from livewell.refresh.store import Storer"),
        ("livewell.db.pool", "def later():\n    import livewell.app"),
        ("livewell.refresh.fetch", "import aiohttp"),
        ("livewell.refresh.store", "from psycopg import sql"),
        ("livewell.cli.get", "import psycopg_pool"),
    ],
)
def test_a_broken_import_rule_is_noticed(module: str, text: str) -> None:
    """Broken on purpose."""
    assert broken_imports(module, text) != []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("livewell.refresh.validate", "now = datetime.now(UTC)"),
        ("livewell.limits.limiter", "left = reset - time.time()"),
        ("livewell.refresh.store", "try:\n    act()\nexcept Exception:\n    pass"),
        ("livewell.refresh.store", "try:\n    act()\nexcept:\n    pass"),
        ("livewell.refresh.apply", 'call(f"SELECT * FROM livewell_data.{name}")'),
        ("livewell.refresh.apply", 'call(f"DROP TABLE {table}")'),
    ],
)
def test_a_broken_rule_is_noticed(module: str, text: str) -> None:
    """Broken on purpose."""
    assert broken_rules(module, text) != []
>>>>>>> b9414fd928bd018feb72c56e9f9a5be6aceeff03
