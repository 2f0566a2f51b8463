"""L9: the source archive is made from a list; what else lies in the folder is not in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
STRAY = (
    ".env",
    ".env.production",
    "notes.private",
    "junk/core",
    "dump.sql",
    "src/livewell/.env",
    "tests/.env.local",
    "docs/tls.key",
    "examples/server.pem",
)


def test_the_source_archive_holds_what_is_listed_and_nothing_else(tmp_path: Path) -> None:
    """Built offline from a copy of the checkout with files that nobody tracks.

    What the wheel is made of is there.
    """
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    copy = tmp_path / "checkout"
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for name in STRAY:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("FMP_API_KEY=canary-of-the-archive")

    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path / "out")],
        cwd=copy,
        check=True,
        capture_output=True,
        timeout=300,
    )

    [archive] = (tmp_path / "out").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        members = {member.name.partition("/")[2]: member for member in opened.getmembers() if member.isfile()}
        for name, member in members.items():
            content = opened.extractfile(member)
            assert content is not None
            assert name == "tests/apps/test_sdist.py" or b"canary-of-the-archive" not in content.read(), name
    assert set(members) <= {*tracked, "PKG-INFO"}
    wanted = {name for name in tracked if name.startswith(("src/", "docs/", "examples/"))}
    assert wanted <= set(members)
    assert {"pyproject.toml", "README.md", "LICENSE", "SECURITY.md", "Makefile"} <= set(members)
    assert {"requirements.lock", "requirements-dev.lock"} <= set(members)
