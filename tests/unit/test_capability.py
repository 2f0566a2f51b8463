"""The capabilities of this package.

Every part is there, the help keeps its order, and one module alone names them all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import livewell
from livewell.capability import BUILT_IN, built_in
from livewell.cli.command import commands
from livewell.finding import Check
from livewell.schedule.definition import OURS
from livewell.telemetry.gauge import Gauge

SOURCE = Path(livewell.__file__).parent
HELP = """
    demo up serve worker migrate types get watch why plan state doctor upstreams queues jobs outbox
    dead schedules runs singletons contacts exports resumes health alerts warnings audit keys db settings docs bench
    screenshots
"""


def test_every_reference_can_be_imported() -> None:
    """Nothing is imported before it is asked for, so a misspelt one would be found in production."""
    for one in built_in():
        for part, reference in one.references():
            assert one.load(part, reference) is not None


def test_every_part_is_of_its_kind() -> None:
    """Gauges have names of their own, checks are functions."""
    gauges: list[Gauge] = [gauge for one in built_in() if one.gauges for gauge in one.load("gauges", one.gauges)]
    checks: list[Check] = [check for one in built_in() if one.checks for check in one.load("checks", one.checks)]
    assert len({gauge.name for gauge in gauges}) == len(gauges) == 91
    assert len(checks) == 32
    assert all(gauge.name.startswith(f"{OURS[:-1]}_") for gauge in gauges)


def test_every_package_with_sql_is_a_capability_of_its_name() -> None:
    """Else its tables would not be installed."""
    folders = {path.parent.name for path in SOURCE.rglob("sql") if path.is_dir()}
    found = {one.name: one.migrations for one in built_in() if one.migrations is not None}
    assert set(found) == folders
    assert all(found[name] in (SOURCE / name / "sql", SOURCE / "apps" / name / "sql") for name in folders)


def test_the_help_lists_commands_in_the_order_of_use() -> None:
    """Whatever the order of capabilities."""
    assert list(commands(built_in())) == HELP.split()


def test_only_the_one_list_names_every_capability() -> None:
    """Whoever adds one edits its folder, the list, and docs."""
    names = {reference.split(".")[1] for reference in BUILT_IN}
    named = {
        str(path.relative_to(SOURCE)): set(re.findall(r"\blivewell\.([a-z]+)", path.read_text())) & names
        for path in SOURCE.rglob("*.py")
    }
    assert [path for path, found in named.items() if found == names] == ["capability.py"]


def test_asking_for_capabilities_imports_nothing_heavy() -> None:
    """`livewell --help`, and a program that only enqueues, must not wait for the web framework or the HTTP client."""
    code = (
        "import sys, livewell, livewell.cli; from livewell.capability import capabilities; capabilities();"
        "print([name for name in ('aiohttp', 'fastapi', 'starlette', 'uvicorn', 'prometheus_client') if name in "
        "sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
