"""How often one client may ask: a token bucket per client and kind of request, in this process.

full ──request──▶ less by its cost ──time──▶ full          not enough ──request──▶ refused, with the seconds until there is

What a request costs is known before its body is read: one, and one more for every kilobyte of it. A
thousand keys thus cost forty times as much as one.

The buckets are bounded: the client that was seen longest ago is forgotten first, and begins again
with a full one.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Literal

from livewell.settings import Settings

Kind = Literal["session", "read", "other", "page"]

CLIENTS_MAX = 20_000
BURST_SECONDS = 2.0  # of the rate: so many at once
_PAGE_TIMES = 5  # a page is a dozen files, and many people may share one address


class ClientRates:
    """The buckets of all clients of one process."""

    def __init__(
        self,
        rates: Mapping[Kind, float],
        *,
        clients_max: int = CLIENTS_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rates = dict(rates)
        self._clients_max = clients_max
        self._clock = clock
        self._levels: OrderedDict[tuple[str, Kind], tuple[float, float]] = OrderedDict()  # client → tokens, when

    @classmethod
    def from_settings(cls, settings: Settings) -> ClientRates:
        """With the configured rates."""
        return cls(
            {
                "session": settings.session_requests_per_second,
                "read": settings.read_requests_per_second,
                "other": settings.requests_per_second,
                "page": settings.requests_per_second * _PAGE_TIMES,
            }
        )

    def take(self, client: str, kind: Kind, n: float = 1.0) -> float:
        """Take n tokens, or all that a full bucket has.

        0 when there were, else the seconds until there will be.
        """
        rate = self._rates[kind]
        most = max(1.0, rate * BURST_SECONDS)
        n = min(n, most)
        now = self._clock()
        level, then = self._levels.pop((client, kind), (most, now))
        level = min(most, level + (now - then) * rate)
        wait = 0.0 if level >= n else (n - level) / rate
        self._levels[client, kind] = (level - n if wait == 0.0 else level, now)
        while len(self._levels) > self._clients_max:
            self._levels.popitem(last=False)
        return wait

    def empty(self, client: str, kind: Kind) -> bool:
        """Whether nothing could be taken now; takes nothing."""
        level, then = self._levels.get((client, kind), (1.0, 0.0))
        return level + (self._clock() - then) * self._rates[kind] < 1.0
