"""How much of everything is measured; the defaults are the sizes the bounds are stated for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bench.sizes import scaled


@dataclass(frozen=True, slots=True)
class Sizes:
    """Whole numbers. Each contact has three identities."""

    contacts: int = 1_000_000
    calls: int = 20_000  # of each kind, in all
    clients: int = 8
    crowd: int = 1_000  # calls at once about one contact

    def scaled(self, factor: float) -> Self:
        """The same in small, to try the harness out: figures of a scaled run mean nothing."""
        return scaled(self, factor)
