"""The tutorial does what it says.

Its commands run as they stand, in one shell, in an empty folder.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from livewell.testing.processes import free_port

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorial/add_a_type.md"
SECONDS_MAX = 300


def commands(port: int) -> str:
    """Every sh block but the first, which is about the folder; on a port of this test's own."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return "set -e -o pipefail\n" + "\n".join(blocks[1:]).replace("8700", str(port))


def test_a_new_type_comes_alive_by_the_book(livewell_dsn: str, tmp_path: Path) -> None:
    """Created, read, watched, parked, changed, refused, lied to, mended.

    No Python and no restart.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIVEWELL_")}
    environment = {
        **kept,
        "DATABASE_URL": livewell_dsn,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    shell = subprocess.Popen(
        ["bash", "-c", commands(free_port())],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = shell.communicate(timeout=SECONDS_MAX)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)  # what it left running
    said += (tmp_path / "up.log").read_text()

    assert shell.returncode == 0, said
    for words in (
        "simulator.toml: simulator created, version 1.",
        "price.toml: price created, version 1.",
        "nobody watches, nobody calls",
        "price.toml: price changed, version 2.",
        "name         Apple Inc.",
        "ALTER COLUMN volume TYPE",
        "refused, exit 1",
        "wrong_key",
    ):
        assert words in said, said
    assert said.count("worker started") == 1
    assert [line for line in said.splitlines() if '"AAPL"' in line and '"verdict": "fresh"' in line], said


def test_a_first_event_by_the_book(livewell_dsn: str, tmp_path: Path) -> None:
    """Its program and its commands as they stand, with a short lease; a killed worker included."""
    page = (ROOT / "docs/tutorial/first_event.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIVEWELL_")}
    short = {"LIVEWELL_LEASE_SECONDS": "2", "LIVEWELL_HEARTBEAT_SECONDS": "0.3"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shell = subprocess.Popen(
        ["bash", "-c", "set -e -o pipefail\n" + "\n".join(blocks)],
        cwd=tmp_path,
        env={**kept, **short, "DATABASE_URL": livewell_dsn, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = shell.communicate(timeout=SECONDS_MAX)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)  # what it left running

    assert shell.returncode == 0, said
    assert said.count("order 2: card declined") == 3
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert {event["subject"] for event in events} == {"1", "3"}
    assert len({event["id"] for event in events}) == 6
