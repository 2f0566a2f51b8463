"""How much of everything is measured; the defaults are the sizes the bounds are stated for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bench.sizes import scaled


@dataclass(frozen=True, slots=True)
class Sizes:
    """Whole numbers.

    Intervals and leases are not among them, for they are the same in a small run.
    """

    jitter_slots: int = 200
    frozen_slots: int = 200
    sessions: int = 100_000
    keys: int = 50_000
    checks: int = 9  # of the state
    memory_seconds: int = 1800  # that tabs of the dashboard stay open

    def scaled(self, factor: float) -> Self:
        """The same in small, to try the harness out: figures of a scaled run mean nothing."""
        return scaled(self, factor)
