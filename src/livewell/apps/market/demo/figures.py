"""The figures of one instant: watched rows from the database, calls from the simulator."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from livewell.apps.market.simulator import Simulator, SimulatorFailed
from livewell.db import Database

REFRESHED = ("stored", "corrected", "unchanged")
_NOT_REJECTED = (*REFRESHED, "missing", "type_changed", "singly", "forgotten", "fenced")
_MINUTE_SECONDS = 60.0

# A viewer who was seen within five minutes watches, as the due check has it.
_WATCHED = """
WITH instant AS MATERIALIZED (SELECT livewell.now() AS now),
watched AS (
    SELECT b.data_type, b.key, count(*) AS viewers FROM instant i, livewell.subscription b JOIN livewell.viewer_session s ON s.id = b.session_id
    WHERE s.seen_at > i.now - interval '5 minutes' GROUP BY b.data_type, b.key
)
SELECT w.data_type, w.key, w.viewers, coalesce(livewell.verdict(t, l, i.now), 'missing'), extract(epoch FROM i.now - l.checked_at)::float8, l.reason, i.now,
       extract(epoch FROM coalesce(l.ttl_override, t.ttl))::float8, extract(epoch FROM t.max_source_age)::float8
FROM instant i, watched w JOIN livewell.data_type t ON t.name = w.data_type LEFT JOIN livewell.ledger l ON l.data_type = w.data_type AND l.key = w.key
"""
_COUNTED = "SELECT outcome, sum(n)::bigint, sum(wire_bytes)::bigint FROM livewell.refresh_count GROUP BY outcome"
_PRICES = "SELECT q.key, q.price, q.change_percentage FROM livewell_data.quote q WHERE q.key = ANY (%s)"


@dataclass(frozen=True, slots=True)
class Row:
    """One watched row at one instant."""

    type: str
    key: str
    viewers: int
    verdict: str
    age_seconds: float | None
    reason: str | None
    at: datetime
    ttl_seconds: float
    max_source_age_seconds: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """One look at everything."""

    rows: Sequence[Row]
    prices: Mapping[str, tuple[object, object]]
    outcomes: Mapping[str, int]
    wire_bytes: int
    calls_last_minute: int
    calls: int
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def share_fresh(self) -> float:
        """Of the watched rows; 0 when nothing is watched."""
        return self.verdicts["fresh"] / len(self.rows) if self.rows else 0.0

    @property
    def refreshes(self) -> int:
        """Answers that were taken, the same content or another."""
        return sum(self.outcomes.get(outcome, 0) for outcome in REFRESHED)

    @property
    def rejected(self) -> dict[str, int]:
        """Answers that were not taken, by reason, the most frequent first."""
        found = {outcome: n for outcome, n in self.outcomes.items() if outcome not in _NOT_REJECTED}
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))

    def quote_ages(self) -> list[float]:
        """Seconds since each watched quote was last confirmed by an answer, in order."""
        return sorted(row.age_seconds for row in self.rows if row.type == "quote" and row.age_seconds is not None)


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The value below which this share lies."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


class Gauge:
    """Takes the figures."""

    def __init__(self, database: Database, simulator: Simulator, shown: Sequence[str]) -> None:
        self._database = database
        self._simulator = simulator
        self._shown = list(shown)
        self._calls: deque[tuple[float, int]] = deque([(time.monotonic(), 0)], maxlen=1_000)

    async def take(self) -> Figures:
        """Ask both; raises DatabaseError while the database is away."""
        rows = [Row(*row) for row in await self._database.call(_WATCHED)]
        prices = {key: (price, change) for key, price, change in await self._database.call(_PRICES, (self._shown,))}
        counted = await self._database.call(_COUNTED)
        calls = await self._count_calls()
        return Figures(
            rows,
            prices,
            {outcome: n for outcome, n, _ in counted},
            sum(sent for _, _, sent in counted),
            calls - self._calls[0][1],
            calls,
            Counter(row.verdict for row in rows),
        )

    async def _count_calls(self) -> int:
        """By the simulator, which counts on from its log after a restart; while it is down, what it
        said last.
        """
        now = time.monotonic()
        try:
            calls = (await self._simulator.counts())["calls"]
        except SimulatorFailed:
            return self._calls[-1][1]
        self._calls.append((now, calls))
        while len(self._calls) > 1 and now - self._calls[1][0] >= _MINUTE_SECONDS:
            self._calls.popleft()
        return int(calls)
