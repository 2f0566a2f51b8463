"""kill -9: of rendering children, and of the workers above them.

A child is found as the kernel tells it: a process whose parent is a worker of ours and which runs
the program of rendering children.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from livewell.apps.kit.processes import KeptProcess, Say

__all__ = ["Kills", "find_children", "kill_now_and_then"]

_EVERY_SECONDS = 1.5
_PROGRAM = b"exports/render/child.py"


class Kills:
    """How many died by our hand."""

    def __init__(self) -> None:
        self.children = 0
        self.workers = 0


def find_children(worker: int) -> list[int]:
    """The rendering children of a worker, by number; where there is no /proc, none."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            parent = int((place / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            if parent == worker and _PROGRAM in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return sorted(found)


async def kill_now_and_then(workers: Sequence[KeptProcess], dice: random.Random, kills: Kills, say: Say) -> None:
    """One after the other, until cancelled: two children, then a worker."""
    while True:
        for what in ("child", "child", "worker"):
            await asyncio.sleep(_EVERY_SECONDS)
            victim = dice.choice(workers)
            if victim.pid is None:
                continue
            if what == "worker":
                say(f"kill -9 {victim.pid}, a worker")
                await victim.kill()
                kills.workers += 1
            elif children := await asyncio.to_thread(find_children, victim.pid):
                child = dice.choice(children)
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                    kills.children += 1
