"""What the lines share: a migrated database, a folder for logs, and workers in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench.operations.sizes import Sizes
from bench.refresh.lab import migrate
from bench.server import Database, Server
from bench.system import python_system

SYSTEM = python_system("livewell", "bench.operations.child")


@dataclass(frozen=True, slots=True)
class Lab:
    """What a measurement needs."""

    server: Server
    sizes: Sizes
    folder: Path
    say: Callable[[str], None]
    _numbers: Iterator[int] = field(default_factory=count, repr=False)

    @contextmanager
    def database(self) -> Iterator[Database]:
        """A database with the tables and nothing in them."""
        with self.server.database(self.server.template("operations", migrate)) as database:
            yield database

    def file(self, name: str) -> Path:
        """A new name in the folder."""
        return self.folder / f"{name}-{next(self._numbers)}"
