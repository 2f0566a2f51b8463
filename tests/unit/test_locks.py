"""Two lock files: what running needs, and beside it what tests and checks need.

The same pins in both.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)


def pins(name: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Version and hashes of each package."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = list(PIN.finditer(text))
    ends = [pin.start() for pin in found[1:]] + [len(text)]
    return {
        pin[1]: (pin[2], frozenset(re.findall(r"--hash=sha256:[0-9a-f]{64}", text[pin.start() : end])))
        for pin, end in zip(found, ends, strict=True)
    }


def wanted(part: list[str]) -> set[str]:
    """The packages that a list of pyproject.toml names."""
    return {re.split(r"[^A-Za-z0-9._-]", entry)[0].lower().replace("_", "-") for entry in part}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_pin_has_hashes_and_no_address_is_kept(name: str) -> None:
    """Whoever installs has an index of their own; a hash says that it is the same file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert len(pins(name)) > 50
    assert [package for package, (_, hashes) in pins(name).items() if not hashes] == []


def test_what_running_needs_is_pinned_alike_in_both() -> None:
    """Tests run on what users run."""
    run, dev = pins("requirements.lock"), pins("requirements-dev.lock")
    assert {name: dev.get(name) for name in run} == run


def test_each_holds_what_it_is_for() -> None:
    """Dependencies, and what an editable install needs, in the first; every extra in the second.

    No tool of ours in the first.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    run, dev = set(pins("requirements.lock")), set(pins("requirements-dev.lock"))
    build = wanted(project["dependency-groups"]["build"])
    extras = {name for part in project["project"]["optional-dependencies"].values() for name in wanted(part)}

    assert wanted(project["project"]["dependencies"]) | build <= run
    assert extras <= dev
    assert run & (extras - build) == set()
