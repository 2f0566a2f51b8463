"""How much of everything is measured; the defaults are the sizes the bounds are stated for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from bench.sizes import scaled


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of events, unless the name says otherwise; rates are the same in a small run."""

    drained: int = 200_000
    keys: int = 10_000  # that the events of a backlog are spread over
    transactions: int = 2_000
    samples: int = 500  # of the idle latency
    backlog: int = 1_000_000  # of the busy tenant
    fair_seconds: int = 20  # that the quiet tenant emits for
    fair_event_us: int = 25  # that the sink takes for an event, so that the backlog lasts as long
    failing: int = 200_000  # in all, of which a hundredth fails
    snapshot: int = 50_000  # of a drain, before and after
    snapshot_seconds: int = 60
    lives: int = 20_000  # whose WAL is counted
    published: int = 50_000

    def scaled(self, factor: float) -> Self:
        """The same in small, to try the harness out: figures of a scaled run mean nothing."""
        return replace(scaled(self, factor), fair_event_us=round(self.fair_event_us / factor))
