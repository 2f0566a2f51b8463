"""`livewell demo resumes`: real processes, real kills, and judges that can say no (E1, E2, E8 to E11)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from livewell.apps.resumes.demo.user import Accepted, Download, Saw
from livewell.apps.resumes.demo.verdict import Verdict, judge_rows, judge_users
from livewell.testing.processes import ChildProcess

FILE = b"%PDF of ann"
SHA = hashlib.sha256(FILE).hexdigest()
ONE = UUID(int=1)
PATH = f"{'a' * 32}/{ONE}/7.pdf"


def row(**changes: Any) -> dict[str, Any]:
    """A finished export of ann."""
    found = {"id": ONE, "user_id": "ann", "state": "finished", "bytes": len(FILE), "sha256": SHA, "path": PATH}
    return found | changes


def saw(**changes: Any) -> Saw:
    """What ann saw of it."""
    accepted = Accepted(ONE, **{name: value for name, value in changes.items() if name == "deleted"})
    return Saw({ONE: accepted}, changes.get("downloads", [Download(ONE, SHA, len(FILE))]))


@pytest.mark.campaign
def test_it_ends_with_the_verdict_of_the_downloads(livewell_dsn: str, tmp_path: Path) -> None:
    """And the faults fired: children and workers were killed."""
    command = ["-m", "livewell.cli", "demo", "resumes", "--for", "10", "--json"]
    with ChildProcess(command, env={"TMPDIR": str(tmp_path), "DATABASE_URL": livewell_dsn}, cwd=tmp_path) as child:
        assert child.wait(timeout=400) == 0, child.describe()
        found = json.loads(child.lines("stdout")[-1])
    assert len(child.lines("stdout")) == 1
    assert (found["violations"], found["lies"]) == (0, [])
    assert (found["wrong"], found["lost"], found["orphans"], found["quota"]) == (0, 0, 0, 0)
    assert min(found["downloads"], found["rendered_again"], found["workers_killed"], found["children_killed"]) > 0


@pytest.mark.parametrize(
    ("state", "log", "lies"),
    [
        ("finished", saw(), 0),
        ("finished", saw(downloads=[]), 1),  # lost: it cannot be loaded
        ("running", saw(), 1),  # lost: it never ends
        ("failed", saw(downloads=[]), 0),  # its user was told
        ("finished", saw(downloads=[Download(ONE, "0" * 64, len(FILE))]), 1),  # wrong
        ("finished", saw(deleted=True), 1),  # it came back
        ("deleted", saw(deleted=True), 0),
    ],
)
def test_the_judge_of_downloads_sees_what_is_wrong(state: str, log: Saw, lies: int) -> None:
    """Lost, wrong and deleted in vain."""
    verdict = Verdict()
    judge_users([log], [row(state=state)], verdict)
    assert len(verdict.lies) == lies


@pytest.mark.parametrize(
    ("rows", "usage", "files", "lies"),
    [
        ([row()], (len(FILE), 0), {PATH: FILE}, 0),
        ([row()], (len(FILE), 0), {}, 1),  # lost
        ([row()], (len(FILE), 0), {PATH: b"%PDF of bob"}, 1),  # wrong
        ([row(state="failed")], (0, 0), {PATH: FILE}, 1),  # an orphan
        ([row()], (2 * len(FILE), 0), {PATH: FILE}, 1),  # counted twice
        ([row()], (len(FILE), 200_000), {PATH: FILE}, 1),  # reserved for ever
    ],
)
def test_the_judge_of_files_sees_what_is_wrong(
    tmp_path: Path, rows: list[dict[str, Any]], usage: tuple[int, int], files: dict[str, bytes], lies: int
) -> None:
    """Lost files, other files, files of nobody, and quotas that are not the sum."""
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(data)
    counted = {"user_id": "ann", "stored_bytes": usage[0], "reserved_bytes": usage[1]}
    verdict = Verdict()
    judge_rows(rows, [counted], tmp_path, verdict)
    assert len(verdict.lies) == lies
