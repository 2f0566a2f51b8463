"""What was refused at the gate, by kind and by address.

It becomes a metric, and one log line a minute for each kind.

A flood must not become a flood of log lines, but a line must be enough to act on: how many were
refused, and which address was the worst. Addresses are in the log only; the rows that the doctor
reads have counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import structlog

from livewell.telemetry.measures import REFUSED

log = structlog.get_logger("livewell.gate")

Kind = Literal[
    "address_connections",  # the address has its share of connections
    "all_connections",  # all connections are taken
    "silent",  # connected, and not a byte came
    "slow_head",
    "long_head",
    "chunked_body",
    "pipelined",
    "not_http",
    "slow_body",
    "large_body",
    "slow_answer",  # the client does not take it
    "too_often",
    "unknown_caller",
    "share",  # the client has its share of something
    "busy",  # all of something is taken
]
_ADDRESSES_MAX = 1000  # of one kind in a minute; later ones are counted together
_OTHERS = "others"
_ORDINARY = {"silent": 20}  # in a minute: browsers connect ahead of need


@dataclass(frozen=True, slots=True)
class Told:
    """One kind in one minute."""

    kind: Kind
    n: int
    worst: str
    n_worst: int


class Refusals:
    """The refusals of one server."""

    def __init__(self) -> None:
        self._counts: defaultdict[Kind, Counter[str]] = defaultdict(Counter)

    def count(self, kind: Kind, network: str) -> None:
        """One more of this kind, from there."""
        REFUSED.add(kind)
        counts = self._counts[kind]
        counts[network if network in counts or len(counts) < _ADDRESSES_MAX else _OTHERS] += 1

    def tell(self) -> list[Told]:
        """Log a line for each kind since the last time, and begin anew."""
        told = list(self._take())
        for one in told:
            if one.n <= _ORDINARY.get(one.kind, 0):
                continue
            log.warning("refused at the gate", kind=one.kind, n=one.n, worst=one.worst, n_worst=one.n_worst)
        return told

    def _take(self) -> Iterator[Told]:
        counts, self._counts = self._counts, defaultdict(Counter)
        for kind, by_network in counts.items():
            worst, n_worst = by_network.most_common(1)[0]
            yield Told(kind, by_network.total(), worst, n_worst)
