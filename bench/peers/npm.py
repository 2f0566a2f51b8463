"""Node and the packages of node/package.json, installed by name into a cache folder outside the repository.

    ~/.cache/livewell-bench/node-<hash of package.json>/   package.json, node_modules, and copies of our .mjs programs: ES modules are looked up from where a program lies

Where the machine's own node is too old, the package `node` of the same list provides one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.system import System

_HERE = Path(__file__).parent
_NODE_MIN = (22, 18)
_INSTALL_SECONDS_MAX = 300
_PROGRAMS = ("graphile.mjs", "pgboss.mjs", "node/stage.mjs")


class NodeMissing(RuntimeError):
    """The peers that need Node cannot be measured here; the text says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A folder with everything, and the binary to run it with."""

    folder: Path
    binary: Path

    def system(self, name: str) -> System:
        """The system whose program is NAME.mjs."""
        return System(name, (str(self.binary), f"{name}.mjs"), folder=self.folder)


def provide() -> Node:
    """Install what is not there yet. Raises NodeMissing."""
    listing = _HERE / "node" / "package.json"
    digest = hashlib.sha256(listing.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "livewell-bench" / f"node-{digest}"
    installed = folder / ".installed"
    if not installed.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(listing, folder)
        _install(folder)
        installed.touch()
    for program in _PROGRAMS:
        shutil.copy(_HERE / program, folder)
    return Node(folder, _binary(folder))


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NodeMissing("npm is not on the path")
    try:
        done = subprocess.run(
            [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NodeMissing(f"npm install did not end within {_INSTALL_SECONDS_MAX} s") from None
    if done.returncode != 0:
        raise NodeMissing(f"npm install failed: {done.stderr.strip()[-300:]}")


def _binary(folder: Path) -> Path:
    """The machine's own where it is new enough, else the one of the package `node`."""
    own = shutil.which("node")
    for candidate in ([Path(own)] if own else []) + [folder / "node_modules" / "node" / "bin" / "node"]:
        if candidate.exists() and _version(candidate) >= _NODE_MIN:
            return candidate
    raise NodeMissing(f"there is no node of at least {'.'.join(map(str, _NODE_MIN))}")


def _version(binary: Path) -> tuple[int, ...]:
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
        return tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2])
    except (OSError, subprocess.SubprocessError, ValueError):
        return (0,)
