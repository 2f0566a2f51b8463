"""Killed, or just being stopped? The files of a server look the same for a moment."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from livewell.db.embedded import server
from livewell.db.embedded.folder import Folder

SECONDS = 20.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """With the pid file of a process that has ended."""
    made = Folder(tmp_path)
    made.cluster.mkdir(parents=True)
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (made.cluster / "postmaster.pid").write_bytes(ended.stdout)
    monkeypatch.setattr(server, "open_folder", lambda _: made)
    return made


def test_a_server_that_left_its_pid_file_was_killed(folder: Folder, tmp_path: Path) -> None:
    """Nobody who stops it in order is at work."""
    assert server.was_killed(tmp_path)
    (folder.cluster / "postmaster.pid").unlink()
    assert not server.was_killed(tmp_path)


def test_a_server_that_is_being_stopped_was_not_killed(folder: Folder, tmp_path: Path) -> None:
    """Whoever stops it holds the lock until its pid file is gone.

    Seen failing without the second look: `up` started it again.
    """
    asked = threading.Event()

    def ask() -> bool:
        asked.set()
        return server.was_killed(tmp_path)

    with ThreadPoolExecutor() as threads:
        with folder.locked(0):
            answer = threads.submit(ask)
            asked.wait(SECONDS)
            threading.Event().wait(0.2)  # without the second look the answer is given by now
            (folder.cluster / "postmaster.pid").unlink()
        assert not answer.result(SECONDS)
