"""Capabilities of other packages, installed for one test.

A folder on sys.path with the metadata that pip writes.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from livewell import capability
from livewell.server import pages

EXAMPLE = Path(__file__).parents[3] / "examples" / "capability" / "livewell_beacons"
BEACONS = "livewell_beacons.capability:CAPABILITY"

Offer = Callable[[str, str], None]


def forget() -> None:
    """What this process knows of capabilities."""
    for known in (capability.built_in, capability.capabilities, pages.shelf):
        known.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("livewell_beacons", "toy_"))]:
        del sys.modules[name]


def write_distribution(site: Path, package: str, entries: dict[str, str], *, group: str = capability.GROUP) -> None:
    """What pip leaves behind of a package beside its modules."""
    folder = site / f"{package.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (folder / "entry_points.txt").write_text(f"[{group}]\n{lines}")


@pytest.fixture
def site(tmp_path: Path, livewell_template: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for packages; what was imported from it is forgotten."""
    assert livewell_template  # made before, from the built-in capabilities alone
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    forget()
    yield folder
    forget()


@pytest.fixture(params=["entry point", "list"])
def beacons(request: pytest.FixtureRequest, site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example, plugged in both ways; gives the folder on sys.path."""
    shutil.copytree(EXAMPLE, site / "livewell_beacons", ignore=shutil.ignore_patterns("__pycache__"))
    if request.param == "entry point":
        write_distribution(site, "livewell-beacons", {"beacons": BEACONS})
    else:
        monkeypatch.setattr(capability, "BUILT_IN", (*capability.BUILT_IN, BEACONS))
    return site


@pytest.fixture
def offer(site: Path) -> Offer:
    """Install a package of one module, toy_<name>, that offers CAPABILITY."""

    def install(name: str, source: str) -> None:
        (site / f"toy_{name}.py").write_text(f"from livewell.capability import *\n{source}\n")
        write_distribution(site, f"toy-{name}", {name: f"toy_{name}:CAPABILITY"})
        forget()

    return install
