"""What is known of a key at one instant: its value, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from livewell.refresh.verdict_clock import clock

# Why a key that is not fresh enough cannot be refreshed now: Reading.throttled in words.
THROTTLED = MappingProxyType(
    {
        "budget": "the budget of the upstream is used up",
        "breaker": "the breaker of the upstream is open",
        "upstream": "the upstream asked for silence",
        "probe": "one call is trying whether the upstream is back",
        "backed_off": "the last refreshes failed",
        "paused": "the type or its upstream is paused",
        "parked": "the plan at the upstream does not include this type",
    }
)
HOLDING = frozenset({"fresh", "unverifiable", "lagging"})  # verdicts that end by the mere passing of time


@dataclass(frozen=True, slots=True)
class Reading:
    """A value with its provenance (X1).

    value is a row, a list of rows for sets and series, or None when there is none. Values of
    numeric columns are Decimal, digit by digit as stored.

    verdict: fresh, stale, lagging (the source itself is late), unverifiable (the source gives no
    time), missing, failing. source_at: what the source says of its own time; fetched_at: when this
    content was fetched; checked_at: when it was last confirmed; version grows with the content;
    reason: why the last attempt failed, if it did.

    throttled, of app.get: the value was not fresh enough and cannot be refreshed now, so nothing
    was queued. It says why: budget, breaker, upstream (it asked for silence), probe, backed_off,
    paused, parked. retry_at: when it is worth asking again, None if that is not known (X5).

    stale_at: until then the verdict holds, on the database's clock; fresh_for_seconds: how long
    that was when the reading was made. Code that keeps a reading asks now() for the present
    verdict.
    """

    type: str
    key: str
    value: Any
    verdict: str
    source_at: datetime | None
    fetched_at: datetime | None
    checked_at: datetime | None
    version: int
    reason: str | None
    error: str | None = None
    status_version: int = field(default=0, compare=False)  # grows with anything that is shown
    stale_at: datetime | None = None
    fresh_for_seconds: float | None = field(default=None, compare=False)
    throttled: str | None = field(default=None, compare=False)
    retry_at: datetime | None = field(default=None, compare=False)
    _made_at: float = field(default_factory=clock, compare=False, repr=False)

    @property
    def usable(self) -> bool:
        """There is a value, and nothing says that it is too old by now."""
        return self.value is not None and self.now().verdict in ("fresh", "unverifiable")

    def now(self) -> Reading:
        """The same reading with its verdict as it is by now: stale once its time is over.

        Counted here, so it needs no database (R22).
        """
        if self.verdict not in HOLDING or self.fresh_for_seconds is None:
            return self
        left = self.fresh_for_seconds - (clock() - self._made_at)
        return self if left > 0 else replace(self, verdict="stale", stale_at=None, fresh_for_seconds=None)
