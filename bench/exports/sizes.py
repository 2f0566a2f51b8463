"""How much of everything is measured; the defaults are the sizes the bounds are stated for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bench.sizes import scaled


@dataclass(frozen=True, slots=True)
class Sizes:
    """Whole numbers."""

    accept_seconds: int = 20
    accept_per_second: int = 50
    samples: int = 200  # documents of one page, one after the other; two pages: half as many
    batches: int = 20  # of five documents
    zips: int = 20  # downloads of the same ten files
    renders: int = 2_000  # documents of one page, as fast as they go
    member_kb: int = 100_000  # of each of ten files in the large ZIP

    def scaled(self, factor: float) -> Self:
        """The same in small, to try the harness out: figures of a scaled run mean nothing."""
        return scaled(self, factor)
