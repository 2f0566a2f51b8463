"""`livewell screenshots`: it starts a demo of its own, takes the pictures that were asked for, and ends the demo."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from livewell.testing.processes import ChildProcess

SECONDS = 120.0


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path: Chromium has a socket in its folder. A killed demo leaves what it has made here, too."""
    with TemporaryDirectory(prefix="lw") as made:
        yield Path(made)


def screenshots(dsn: str, home: Path, *arguments: str) -> ChildProcess:
    command = ["-m", "livewell.cli", "screenshots", str(home / "pictures"), "--after", "0", "--json", *arguments]
    return ChildProcess(command, env={"TMPDIR": str(home), "DATABASE_URL": dsn}, cwd=home)


def width_of(picture: Path) -> int:
    """From the head of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, _ = struct.unpack(">II", head[16:])
    return int(width)


def test_pictures_of_chosen_pages_are_taken_from_a_demo(livewell_dsn: str, home: Path) -> None:
    """In the size and theme that was asked for, and no others; of a page that is not there it is said."""
    folder = home / "pictures"
    with screenshots(livewell_dsn, home, "--page", "/", "--page", "/types/quote", "--look", "phone-dark") as child:
        assert child.wait(timeout=SECONDS) == 0, child.describe()
        [line] = child.lines("stdout")
    names = ["overview-phone-dark.png", "types-quote-phone-dark.png"]
    assert json.loads(line) == {"folder": str(folder), "pictures": names}
    assert sorted(one.name for one in folder.iterdir()) == names
    assert [width_of(folder / name) for name in names] == [390, 390]
    assert [one.name for one in home.iterdir()] == ["pictures"], "something of the demo is left"
    with screenshots(livewell_dsn, home, "--page", "/nowhere") as child:
        assert child.wait(timeout=SECONDS) == 2, child.describe()
    assert "there is no page '/nowhere'" in "".join(child.lines("stderr"))
