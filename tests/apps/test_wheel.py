"""The wheel as a user gets it.

Built, unpacked outside the checkout, and used by a project of its own.

Seen failing on 0.5.0: py.typed and the pages that doctor and alerts point to are not in it, and
outside the checkout the example fails ("async def functions are not natively supported").
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.source import parse

ROOT = Path(__file__).parents[2]
PAGE = re.compile(r"livewell docs ([a-z_]+/[a-z_/]+(?:\.json)?)(\{)?")
STRAY = re.compile(r"docs/[a-z_]+/")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the wheel was unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=300,
    )
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def environment(installed: Path, **more: str) -> dict[str, str]:
    """The wheel comes first; what it depends on comes from this interpreter."""
    return {**os.environ, "PYTHONPATH": str(installed), **more}


def test_it_is_typed(installed: Path) -> None:
    """py.typed tells type checkers to read our annotations."""
    assert (installed / "livewell" / "py.typed").is_file()


def test_every_page_that_a_message_names_is_in_it(installed: Path) -> None:
    """Messages name pages as `livewell docs PAGE`.

    A name that ends in a rule's or a finding's is the folder of all of them.
    """
    docs = installed / "livewell" / "docs"
    named: set[str] = set()
    for path in (installed / "livewell").rglob("*.py"):
        for page, filled_in in PAGE.findall(path.read_text(encoding="utf-8")):
            named.add(page)
            found = docs / page if filled_in or page.endswith(".json") else docs / f"{page}.md"
            assert found.exists(), f"{path.name} names {page}"
    assert {"operations/doctor", "operations/alerts/", "howto/alerts", "reference/settings"} <= named
    assert (docs / "operations" / "grafana.json").is_file()


def test_no_message_names_a_file_of_the_checkout(installed: Path) -> None:
    """Whoever reads it has no checkout.

    Docstrings and comments are for whoever reads the source.
    """
    done = subprocess.run(
        [sys.executable, "-c", "import livewell; print(livewell.__file__)"],
        env=environment(installed),
        cwd=installed,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert Path(done.stdout.strip()).is_relative_to(installed)
    for path in (installed / "livewell").rglob("*.py"):
        tree = parse(path.read_text(encoding="utf-8"))
        for text in _told(tree):
            assert not STRAY.search(text) or "do not edit" in text, f"{path.name}: {text}"


def _told(tree: ast.Module) -> list[str]:
    """Every text that is not a docstring."""
    documented = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    docstrings = {id(node.body[0].value) for node in documented if node.body and isinstance(node.body[0], ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in constants if isinstance(node.value, str)]


def test_the_pages_are_read_by_the_command(installed: Path) -> None:
    """From an empty folder; a page that is not there is wrong usage (exit code 2)."""

    def docs(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "livewell.cli", "docs", *arguments],
            env=environment(installed),
            cwd=installed.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    assert "operations/alerts/queue_deep" in docs().stdout.splitlines()
    assert docs("operations/alerts/queue_deep").stdout.startswith("# queue_deep")
    assert docs("docs/operations/doctor.md").stdout == (ROOT / "docs/operations/doctor.md").read_text()
    assert docs("../pyproject").returncode == 2


def test_the_extra_has_what_the_test_kit_needs(installed: Path) -> None:
    """Beside what Livewell itself needs: pytest, and who runs async tests."""
    [metadata] = installed.glob("*.dist-info/METADATA")
    extra = re.findall(r"^Requires-Dist: ([\w-]+).*extra == 'test'", metadata.read_text(), re.MULTILINE)
    assert sorted(extra) == ["pytest", "pytest-asyncio"]
    entries = tomllib.loads(
        re.sub(r"= (.+)", r'= "\1"', next(installed.glob("*.dist-info/entry_points.txt")).read_text())
    )
    assert entries["pytest11"] == {"livewell": "livewell.testing.plugin"}


PROJECT = """
from pathlib import Path
import livewell
from livewell.testing import InlineWorker, opened

app = livewell.Livewell(livewell.Settings())

@app.task(queue="mail")
async def greet(user_id: int) -> None:
    pass

async def test_greets(livewell_settings):
    assert Path(livewell.__file__).is_relative_to(Path({site!r}))
    async with opened(app, livewell_settings):
        await greet.enqueue(user_id=7)
        assert [run.attempt for run in await InlineWorker(app).run()] == [1]

class TestInAClass:
    async def test_greets_too(self, livewell_settings):
        await test_greets(livewell_settings)
"""


def test_a_project_of_its_own_tests_its_tasks_without_configuration(
    installed: Path, tmp_path: Path, livewell_server: str
) -> None:
    """No asyncio_mode, no mark, no conftest; beside it the example, word for word."""
    (tmp_path / "test_greet.py").write_text(PROJECT.replace("{site!r}", repr(str(installed))))
    (tmp_path / "test_your_tasks.py").write_text((ROOT / "examples/test_your_tasks.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env=environment(installed, LIVEWELL_TEST_DSN=livewell_server),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
