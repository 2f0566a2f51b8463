"""What a fault scenario is: one module per code in scenarios/.

Each has CODE, TITLE and `async def run(scale) -> Findings`. A module that does the same for several
codes has SCENARIOS instead.

The oracle is outside: files that handlers append to, effects in tables of the test's own, the
server's own statistics. Livewell's metrics are never the judge. A scenario whose fault never fired
has failed, however well everything went.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tests.faults.scenarios


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of it: the short form for `make test`, the whole for `make faults`."""

    full: bool
    seed: int
    server: str  # address of a Postgres where databases may be created; crash scenarios start servers of their own
    folder: Path  # for logs and data of this run; emptied afterwards

    def pick(self, short: int, full: int) -> int:
        """The number for this scale."""
        return full if self.full else short

    def random(self) -> random.Random:
        """The seeded source of every choice the scenario makes."""
        return random.Random(self.seed)


@dataclass(slots=True)
class Findings:
    """What a run found: how often the fault fired, what broke (empty is good), and figures for the report."""

    fired: int = 0
    violations: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    skipped: str | None = None  # why this machine cannot run it

    def check(self, holds: bool, violation: str) -> None:
        """Record a violation unless it holds; at most 20 are kept in words."""
        if not holds and len(self.violations) < 20:
            self.violations.append(violation)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One code of the fault plan (facts: F-A1 …), ready to run."""

    code: str
    title: str
    run: Callable[[Scale], Awaitable[Findings]]


def scenarios() -> Iterator[Scenario]:
    """Every scenario there is, by code."""
    for module in sorted(pkgutil.iter_modules(tests.faults.scenarios.__path__), key=lambda found: found.name):
        loaded = importlib.import_module(f"tests.faults.scenarios.{module.name}")
        if hasattr(loaded, "CODE"):
            yield Scenario(loaded.CODE, loaded.TITLE, loaded.run)
        yield from getattr(loaded, "SCENARIOS", ())
