"""How much of everything is measured; the defaults are the sizes the bounds are stated for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bench.sizes import scaled


@dataclass(frozen=True, slots=True)
class Sizes:
    """Whole numbers; rates are not among them, for they are the same in a small run."""

    samples: int = 200  # of a latency
    streams: int = 2_000
    stream_keys: int = 50  # of one stream
    keys: int = 5_000
    fan_out_seconds: int = 300
    silent: int = 200
    silent_keys: int = 1_000  # of one silent stream: more than buffers hold
    silent_seconds: int = 40  # before, and again with the silent ones

    def scaled(self, factor: float) -> Self:
        """The same in small, to try the harness out: figures of a scaled run mean nothing."""
        return scaled(self, factor)
