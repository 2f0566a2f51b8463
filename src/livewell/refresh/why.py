"""Why is this key as fresh, or as stale, as it is? The database's answer, and the same in words (X8).

    fresh · unverifiable · lagging · missing                       its rule says that it is not stale
    parked · paused · failing                                      it is stale, and not asked for: why not, and until when
    running · behind n · rate · budget · breaker · no worker …     it is asked for: what its job, or the due check, waits for
    not watched · scheduled                                        nobody asks

Words come in two lengths: what anybody who may read the key is told, and what an operator is told beside it (job, names, what the upstream said, the command that mends it).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from livewell.db import Database
from livewell.queue.why import spelled

_WHY = "SELECT * FROM livewell.why_key(%s, %s)"
NOTHING = ("unknown_type", "bad_key")  # reasons that say: there is no such key


@dataclass(frozen=True, slots=True)
class WhyKey:
    """The first thing that applies; see why_key.sql for the reasons and what goes with each."""

    type: str
    key: str
    reason: str
    verdict: str | None
    viewers: int | None
    source_at: datetime | None
    fetched_at: datetime | None
    checked_at: datetime | None
    fresh_until: datetime | None
    failing_since: datetime | None
    failures: int | None
    failure: str | None  # a word of the closed list
    error: str | None  # what it looked like: for operators
    retry_at: datetime | None
    job_id: int | None
    lane: int | None
    n: int | None
    of_limit: int | None
    other_id: int | None
    name: str | None
    since: datetime | None
    wait_seconds: float | None

    @property
    def words(self) -> str:
        """For whoever may read the key: no names of ours, nothing that an upstream said."""
        return self._filled(_WORDS[self.reason][0])

    @property
    def operator_words(self) -> str:
        """The same, and what only an operator is told."""
        return self.words + self._filled(_WORDS[self.reason][1] + self._viewed())

    def _viewed(self) -> str:
        if self.viewers is None or self.reason == "not_watched":
            return ""
        return f"; {self.viewers} watch it" if self.viewers else "; nobody watches it"

    def _filled(self, text: str) -> str:
        return text.format(
            type=self.type[:60],
            key=self.key[:60],
            source=_instant(self.source_at),
            checked=_instant(self.checked_at),
            until=_instant(self.fresh_until),
            since=_instant(self.since),
            retry=_instant(self.retry_at),
            failure=self.failure or "an attempt failed",
            error=f" ({self.error})" if self.error else "",
            wait=spelled(self.wait_seconds),
            n=f"{self.n:,}" if self.n is not None else "some",
            limit=self.of_limit,
            name=self.name,
            job=f"job {self.job_id}, lane {self.lane}" if self.job_id is not None else "no job yet",
        )


async def why_key(database: Database, type: str, key: str) -> WhyKey:  # noqa: A002 - it is the type's name, and called so everywhere
    """Ask the database; it must be a login that sees all viewers and jobs: worker, operate or readonly."""
    row: tuple[Any, ...] = (await database.call(_WHY, (type, key)))[0]
    return WhyKey(type, key, *row)


# reason → what anybody is told, what an operator is told beside it
_WORDS = {
    "unknown_type": ("there is no such type", ': "{type}" is not in the registry; see: livewell types list'),
    "bad_key": ("the type can have no such key", ": it does not fit {name}, the pattern of {type}"),
    "never_asked": ("nobody ever asked for it", "; ask with: livewell get {type} {key}"),
    "fresh": ("it is fresh: the source says {source}, checked {checked}, good until {until}", ""),
    "unverifiable": (
        "it is as fresh as can be told: checked {checked}, good until {until}; the source gives no time of its own",
        "",
    ),
    "lagging": ("the source lags: at {checked} it still said {source}; it is asked again after {until}", ""),
    "missing": ("the upstream says that there is no such key; that is believed until {until}", ""),
    "parked_type": (
        "it is stale and parked: the plan of the upstream does not include its type",
        " ({name}); once it does: livewell types resume {type}",
    ),
    "paused_type": (
        "it is stale, and its type is paused since {since}",
        "; go on with: livewell types resume {type}",
    ),
    "paused_upstream": (
        "it is stale, and everything from its upstream is paused since {since}",
        "; go on with: livewell types resume --upstream {name}",
    ),
    "parked_key": (
        "it is stale and parked: the plan of the upstream does not include this key; it is asked again at {retry}, in {wait}",
        "{error}",
    ),
    "failing": ("it fails since {since}: {failure}; the next try is at {retry}, in {wait}", "{error}; {job}"),
    "running": ("it is stale, and being refreshed since {since}", "; {job}, worker {name}"),
    "delayed": ("it is stale; its refresh is put off until {since}, for {wait} more", "; {job}"),
    "held_key": ("it is stale; its refresh waits for another of the same key", "; {job}"),
    "held_group": ("it is stale; its refresh waits for another call about this key", "; {job}"),
    "key_limit": ("it is stale; its refresh waits for another call about this key", "; {job}, {n} of {limit} run"),
    "paused_queue": (
        "it is stale, and its queue is paused since {since}",
        "; {job}; go on with: livewell queues resume {name}",
    ),
    "no_worker": (
        "it is stale, and there is no worker to refresh it",
        "; {job}; start one with: livewell worker --queue {name}",
    ),
    "no_task": ("it is stale, and no worker knows how to refresh it", "; {job}: no worker has the task {name}"),
    "suspect": (
        "it is stale; workers died while they refreshed it, so it waits for one that does nothing else",
        "; {job}, {n} of {limit} died",
    ),
    "queue_limit": ("it is stale; as many refreshes run as may at once", "; {job}, {n} of {limit} run in {name}"),
    "concurrency": ("it is stale; as many calls run as may at once", "; {job}, {n} of {limit} run under {name}"),
    "rate": ("it is stale, and the call limit is used up; the next call may go in {wait}", "; {job}, limiter {name}"),
    "budget": (
        "it is stale, and the budget is used up; there is room again in {wait} at the earliest",
        "; {job}, limiter {name}; see: livewell plan",
    ),
    "breaker": (
        "it is stale, and calls are stopped because the upstream failed, for {wait} more",
        "; {job}, the breaker of {name} is open",
    ),
    "probe": (
        "it is stale, and calls are stopped because the upstream failed; one call is trying whether it is back",
        "; {job}, the breaker of {name} is half open",
    ),
    "upstream": ("it is stale, and the upstream asked for silence, for {wait} more", "; {job}, limiter {name}"),
    "behind": ("it is stale and waits behind {n} others", "; {job}, queue {name}"),
    "next": ("it is stale and queued, the next to go", "; {job}, queue {name}"),
    "not_watched": ("it is stale, and nobody watches it: it is parked", "; ask with: livewell get {type} {key}"),
    "scheduled": ("it is stale, and nobody watches it; its type is refreshed by schedule, next at {since}", ""),
    "stalled": (
        "it is stale, and its queue has not moved for 15 s",
        ": {name}; see: livewell queues list",
    ),
    "later": ("it is stale; it is looked at again at {since}, in {wait}", ""),
    "due": (
        "it is stale and due since {since}; of {n} that are due, those with more viewers and a longer wait go first",
        "; upstream {name}",
    ),
}


def _instant(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
