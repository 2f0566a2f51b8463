"""How much of everything is measured; the defaults are the sizes the bounds are stated for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bench.sizes import scaled


@dataclass(frozen=True, slots=True)
class Sizes:
    """Whole numbers; rates are not among them, for they are the same in a small run."""

    samples: int = 200  # of a latency
    sessions: int = 100_000  # each looks at the popular key and at two others
    keys: int = 50_000
    checks: int = 9  # of the due check, in each database
    overload_seconds: int = 300
    overload_keys: int = 10_000
    refreshes: int = 20_000
    hot_seconds: int = 10

    def scaled(self, factor: float) -> Self:
        """The same in small, to try the harness out: figures of a scaled run mean nothing."""
        return scaled(self, factor)
