"""A system that can be measured.

How its child program is started, and whether it has a worker of its own.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class System:
    """Its program knows the verbs install, fill, one, and (with a worker) work and send.

    See bench/stage.py.
    """

    name: str
    command: tuple[str, ...]
    folder: Path | None = None
    has_worker: bool = True


def python_system(name: str, module: str, *, has_worker: bool = True) -> System:
    """A system whose child program is a module of this folder."""
    return System(name, (sys.executable, "-m", module), has_worker=has_worker)


LIVEWELL = python_system("livewell", "bench.livewell_child")
