"""`livewell serve`, `livewell up` and `livewell keys` as people meet them.

Servers are real processes.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from livewell.db import embedded
from tests.support.http import addresses

HIDDEN = ("LIVEWELL_", "DATABASE_URL")


@pytest.fixture
def environment(livewell_dsn: str, tmp_path: Path) -> dict[str, str]:
    """Of a process on this test's database, in an empty folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(HIDDEN)}
    return {**kept, "DATABASE_URL": livewell_dsn, "HOME": str(tmp_path)}


def livewell(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [sys.executable, "-m", "livewell.cli", *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def started(environment: dict[str, str], folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Start a command, and read the line of JSON with which it says where it is."""
    command = [sys.executable, "-m", "livewell.cli", *arguments, "--port", "0", "--json"]
    child = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise AssertionError(child.communicate()[1])
    said: dict[str, Any] = json.loads(line)
    return child, said


def ended(child: subprocess.Popen[str]) -> int:
    child.terminate()
    child.communicate(timeout=30)
    return child.returncode


def test_without_logins_it_refuses_and_says_what_to_run(environment: dict[str, str], tmp_path: Path) -> None:
    """Exit code 2, the SQL and the settings."""
    done = livewell(environment, tmp_path, "serve", "--port", "0")

    assert done.returncode == 2
    assert "ALTER ROLE livewell_api LOGIN PASSWORD" in done.stderr
    assert "LIVEWELL_HUB_URL=" in done.stderr


def test_with_logins_of_its_own_it_serves_and_stops_when_told(
    environment: dict[str, str], tmp_path: Path, livewell_dsn: str, server_logins: dict[str, tuple[str, str]]
) -> None:
    """From `keys create` to a session, and an end with code 0."""
    where = addresses(livewell_dsn, server_logins)
    urls = {"LIVEWELL_API_URL": where.api, "LIVEWELL_OPERATE_URL": where.operate, "LIVEWELL_HUB_URL": where.hub}
    made = json.loads(livewell(environment, tmp_path, "keys", "create", "shop", "--json").stdout)
    child, said = started({**environment, **urls}, tmp_path, "serve")
    try:
        answer = httpx2.post(f"{said['address']}/v1/sessions", headers={"Authorization": f"Bearer {made['key']}"})
        assert answer.status_code == 201
        assert said["login"] is None
        livewell(environment, tmp_path, "keys", "revoke", made["id"])
        listed = json.loads(livewell(environment, tmp_path, "keys", "list", "--json").stdout)
        assert (listed["name"], listed["usable"]) == ("shop", False)
        assert "secret_hash" not in listed
    finally:
        assert ended(child) == 0


def test_without_roles_it_serves_with_one_login_and_says_so(environment: dict[str, str], tmp_path: Path) -> None:
    """Loudly, at start."""
    child, said = started({**environment, "LIVEWELL_ROLES": "none"}, tmp_path, "serve")
    try:
        assert httpx2.get(f"{said['address']}/readyz").status_code == 200
    finally:
        child.terminate()
        assert "one login for everything" in child.communicate(timeout=30)[1]


@pytest.fixture
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An embedded server's folder, where the account of the server can get to."""
    folder = Path(f"/tmp/livewell-test-up-{os.getpid()}-{time.monotonic_ns()}")  # noqa: S108 - a fixture of tests, removed below
    yield folder
    embedded.stop(folder, mode="immediate")
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_up_serves_on_the_embedded_postgres_and_its_link_logs_in_once(
    environment: dict[str, str], tmp_path: Path, own_folder: Path
) -> None:
    """Logins of the roles are made by us, with passwords that only the owner of the folder reads.

    L11: they can fill the disk by neither temporary tables nor large objects (in 0.5.0 an attacker
    made both).
    """
    del environment["DATABASE_URL"]
    child, said = started({**environment, "LIVEWELL_DATA_DIR": str(own_folder)}, tmp_path, "up", "--print-link")
    try:
        token = said["login"].partition("#")[2]
        with httpx2.Client(base_url=said["address"]) as browser:
            assert browser.post("/v1/login", json={"token": token}).status_code == 204
            assert browser.get("/v1/queues").status_code == 200
            assert browser.post("/v1/login", json={"token": token}).status_code == 401
        assert (own_folder / "logins.json").stat().st_mode & 0o077 == 0
        for forbidden in (
            "SELECT * FROM livewell.api_key",
            "CREATE TEMP TABLE t ()",
            "SELECT lo_from_bytea(0, 'x')",
            "SELECT lo_creat(-1)",
        ):
            with pytest.raises(Exception, match="permission denied"):
                _as_api(own_folder, forbidden)
    finally:
        assert ended(child) == 0


def _as_api(folder: Path, query: str) -> None:
    """Do something as the role that requests run as."""
    import psycopg  # noqa: PLC0415 - only here

    server = embedded.status(folder)
    assert server is not None
    with psycopg.connect(embedded.logins(server, ["livewell_api"])["livewell_api"]) as connection:
        connection.execute(query.encode())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--scope", "root"], "allowed are view"),
        (["--public", "--scope", "view,operate"], "view and subscribe only"),
        (["--expires", "never"], "allowed are seconds"),
        (["--expires", "0s"], "more than 0"),
        (["--type", "no type"], "names of types"),
        (["--type", "quote", "--scope", "view,operate"], "bound to types"),
        (["--sessions-max", "5"], "for public keys"),
        (["--public", "--sessions-max", "0"], "1 to 1,000,000"),
    ],
)
def test_a_wrong_key_is_refused_in_words(
    environment: dict[str, str], tmp_path: Path, arguments: list[str], told: str
) -> None:
    """And none is made."""
    done = livewell(environment, tmp_path, "keys", "create", "x", *arguments)

    assert done.returncode == 2
    assert told in done.stderr


def test_a_port_in_use_is_said(environment: dict[str, str], tmp_path: Path) -> None:
    """Before anything is started."""
    import socket  # noqa: PLC0415 - only here

    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = livewell(environment, tmp_path, "serve", "--port", str(taken.getsockname()[1]))

    assert done.returncode == 2
    assert "--port" in done.stderr


def test_a_login_link_is_for_a_person_and_not_for_a_log(
    environment: dict[str, str], tmp_path: Path, own_folder: Path
) -> None:
    """L8: into a pipe goes the command that makes one, to a terminal the link."""
    del environment["DATABASE_URL"]
    environment["LIVEWELL_DATA_DIR"] = str(own_folder)
    child, said = started(environment, tmp_path, "up")
    try:
        assert said["login"] is None
    finally:
        ended(child)  # it speaks before its worker listens to signals, so its code is not looked at

    command = [sys.executable, "-m", "livewell.cli", "serve", "--port", "0"]
    child = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = [child.stdout.readline(), child.stdout.readline()]
    assert ended(child) == 0
    address = lines[0].split()[1]
    assert lines[1] == f"log in   with a link from: livewell keys login --address {address}\n"

    ours, theirs = pty.openpty()
    child = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=theirs, text=True)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as terminal:
        lines = [terminal.readline(), terminal.readline()]
        assert ended(child) == 0
    assert re.fullmatch(rf"log in   {lines[0].split()[1]}/login#\S+", lines[1].strip())
