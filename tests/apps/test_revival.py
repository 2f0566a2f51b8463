"""A long-running command that lives on the embedded Postgres revives it when it is killed (S8)."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from livewell.db import embedded
from livewell.testing.processes import ChildProcess, eventually, free_port
from tests.faults.embedded_support import quick_place

LINES_MAX = 60  # of an outage of seconds; 0.5.0 wrote 539 in 75 s


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder that the server's account may enter."""
    base = Path(tempfile.mkdtemp(prefix="lw-up-", dir=quick_place()))
    base.chmod(0o755)
    yield base / "data"
    embedded.stop(base / "data", mode="immediate")
    shutil.rmtree(base, ignore_errors=True)


def test_up_revives_a_killed_postgres_and_leaves_a_stopped_one_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 of the postmaster: back by itself, ready again, a few lines in the log.

    `livewell db stop`: somebody wanted that.

    Seen failing on 0.5.0: `up` had not started it again after 60 s.
    """
    monkeypatch.delenv("DATABASE_URL", raising=False)
    port = free_port()
    env = {**os.environ, "LIVEWELL_DATA_DIR": str(folder), "LIVEWELL_CALL_TIMEOUT_SECONDS": "2"}
    with ChildProcess(["-m", "livewell.cli", "up", "--port", str(port)], env=env, cwd=tmp_path) as up:
        up.wait_for("worker started", timeout=90)
        first = embedded.status(folder)
        assert first is not None
        mark = up.mark()

        os.kill(first.pid, signal.SIGKILL)

        up.wait_for("embedded postgres is back", timeout=60, since=mark)
        eventually(lambda: _ready(port), timeout=60, what="ready again")
        second = embedded.status(folder)
        assert second is not None
        assert second.pid != first.pid
        assert second.port == first.port
        assert len(up.lines("stderr")) < LINES_MAX

        embedded.stop(folder)

        up.wait_for("embedded postgres was stopped; start it with: livewell db start", timeout=30)
        assert embedded.status(folder) is None
        up.kill()


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
