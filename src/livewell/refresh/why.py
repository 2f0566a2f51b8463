"""Why is this key as fresh, or as stale, as it is?

The database's answer, and the same in words (X8).

    fresh · unverifiable · lagging · missing                       its rule says that it is not stale
    parked · paused · failing                                      it is stale, and not asked for: why not, and until when
    running · behind n · rate · budget · breaker · no worker …     it is asked for: what its job, or the due check, waits for
    not watched · scheduled                                        nobody asks

Words come in two lengths: what anybody who may read the key is told, and what an operator is told
beside it (job, names, what the upstream said, the command that mends it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from livewell.db import Database
from livewell.queue.why import spelled

_WHY = """
SELECT w.*, coalesce(t.tries, 0), t.tried_at, t.older_since, t.older_source_at, t.open_until, t.opened, t.calls, t.calls_failed, t.opened_at, t.cause
FROM (SELECT %s::text AS name, %s::text AS key) asked
CROSS JOIN LATERAL livewell.why_key(asked.name, asked.key) w LEFT JOIN LATERAL livewell.key_trouble(asked.name, asked.key) t ON true
"""
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
    tries: int  # answers since the last good one that brought nothing: failed, refused or older
    tried_at: datetime | None
    older_since: datetime | None
    older_source_at: datetime | None
    open_until: datetime | None  # of the upstream's breaker
    opened: int | None  # times in a row
    calls: int | None  # of the upstream, in ten minutes, while its calls are stopped
    calls_failed: int | None
    opened_at: datetime | None
    cause: str | None  # a word of the closed list: what opened the breaker

    def without_errors(self) -> WhyKey:
        """The same, without what the upstream said: for people who may see no errors."""
        return replace(self, error=None)

    @property
    def words(self) -> str:
        """For whoever may read the key: no names of ours, nothing that an upstream said."""
        return self._filled(_WORDS[self.reason][0] + (_OLDER if self._is_older else ""))

    @property
    def operator_words(self) -> str:
        """The same, and what only an operator is told."""
        said = "{error}" if self.verdict == "failing" and "{error}" not in _WORDS[self.reason][1] else ""
        return self.words + self._filled(_WORDS[self.reason][1] + said + self._viewed())

    @property
    def _is_older(self) -> bool:
        return self.older_since is not None and self.reason not in ("fresh", "unverifiable", "lagging", "missing")

    @property
    def _lead(self) -> str:
        """The verdict, in the word that get and watch use."""
        if self.verdict == "failing":
            return f"it is failing since {_instant(self.failing_since)} ({self._failed})"
        return "there is no value yet" if self.verdict == "missing" else "it is stale"

    @property
    def _failed(self) -> str:
        """What failed, how often, and when last."""
        said = f"{self.failure or 'an attempt failed'}, {times(self.tries)}" if self.tries else str(self.failure)
        return f"{said}, last at {_instant(self.tried_at)}" if self.tries > 1 else said

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
            lead=self._lead,
            failed=self._failed,
            times=times(self.tries),
            older_since=_instant(self.older_since),
            older_source=_instant(self.older_source_at),
            cause=f" since {_instant(self.opened_at)}: {self.cause}" if self.opened_at and self.cause else "",
            calls_failed=f"{self.calls_failed or 0:,} of {self.calls or 0:,} calls failed in ten minutes",
            error=f" ({self.error})" if self.error else "",
            wait=spelled(self.wait_seconds),
            n=f"{self.n:,}" if self.n is not None else "some",
            limit=self.of_limit,
            name=self.name,
            job=f"job {self.job_id}, lane {self.lane}" if self.job_id is not None else "no job yet",
        )


async def why_key(database: Database, type: str, key: str) -> WhyKey:  # noqa: A002 - it is the type's name, and called so everywhere
    """Ask the database; it must be a login that sees all viewers and jobs.

    That is worker, operate or readonly.
    """
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
        "{lead} and parked: the plan of the upstream does not include its type",
        " ({name}); once it does: livewell types resume {type}",
    ),
    "paused_type": (
        "{lead}, and its type is paused since {since}",
        "; go on with: livewell types resume {type}",
    ),
    "paused_upstream": (
        "{lead}, and everything from its upstream is paused since {since}",
        "; go on with: livewell types resume --upstream {name}",
    ),
    "parked_key": (
        (
            "{lead} and parked: the plan of the upstream does not include this key; it is asked again at {retry}, "
            "in {wait}"
        ),
        "{error}",
    ),
    "failing": ("it is failing since {since}: {failed}; the next try is at {retry}, in {wait}", "{error}; {job}"),
    "running": ("{lead}, and being refreshed since {since}", "; {job}, worker {name}"),
    "delayed": ("{lead}; its refresh is put off until {since}, for {wait} more", "; {job}"),
    "held_key": ("{lead}; its refresh waits for another of the same key", "; {job}"),
    "held_group": ("{lead}; its refresh waits for another call about this key", "; {job}"),
    "key_limit": ("{lead}; its refresh waits for another call about this key", "; {job}, {n} of {limit} run"),
    "paused_queue": (
        "{lead}, and its queue is paused since {since}",
        "; {job}; go on with: livewell queues resume {name}",
    ),
    "no_worker": (
        "{lead}, and there is no worker to refresh it",
        "; {job}; start one with: livewell worker --queue {name}",
    ),
    "no_task": ("{lead}, and no worker knows how to refresh it", "; {job}: no worker has the task {name}"),
    "no_credential": (
        "{lead}, and no worker has the credential to refresh it",
        "; {job}: no worker has a credential of {name}; see: livewell doctor",
    ),
    "suspect": (
        "{lead}; workers died while they refreshed it, so it waits for one that does nothing else",
        "; {job}, {n} of {limit} died",
    ),
    "queue_limit": ("{lead}; as many refreshes run as may at once", "; {job}, {n} of {limit} run in {name}"),
    "concurrency": ("{lead}; as many calls run as may at once", "; {job}, {n} of {limit} run under {name}"),
    "rate": ("{lead}, and the call limit is used up; the next call may go in {wait}", "; {job}, limiter {name}"),
    "budget": (
        "{lead}, and the budget is used up; there is room again in {wait} at the earliest",
        "; {job}, limiter {name}; see: livewell plan",
    ),
    "breaker": (
        "{lead}, and calls are stopped because the upstream failed, until {since}, for {wait} more",
        "; {job}, the breaker of {name} is open{cause}; {calls_failed}; to try now: livewell upstreams probe {name}",
    ),
    "probe": (
        "{lead}, and calls are stopped because the upstream failed; one call is trying whether it is back",
        "; {job}, the breaker of {name} is half open{cause}; {calls_failed}",
    ),
    "upstream": (
        "{lead}, and the upstream asked for silence until {since}, for {wait} more",
        "; {job}, limiter {name}; end it with: livewell upstreams resume {name}",
    ),
    "restart": (
        (
            "{lead}, and the database was restarted: before the next call every worker says what it heard from the "
            "upstream meanwhile, which takes {wait} at most"
        ),
        "; {job}, limiter {name}",
    ),
    "behind": ("{lead} and waits behind {n} others", "; {job}, queue {name}"),
    "next": ("{lead} and queued, the next to go", "; {job}, queue {name}"),
    "not_watched": ("{lead}, and nobody watches it: it is parked", "; ask with: livewell get {type} {key}"),
    "scheduled": ("{lead}, and nobody watches it; its type is refreshed by schedule, next at {since}", ""),
    "stalled": (
        "{lead}, and its queue has not moved for 15 s",
        ": {name}; see: livewell queues list",
    ),
    "later": ("{lead}; it is looked at again at {since}, in {wait}", ""),
    "due": (
        "{lead} and due since {since}; of {n} that are due, those with more viewers and a longer wait go first",
        "; upstream {name}",
    ),
}

_OLDER = (
    "; since {older_since} the upstream answers with older data than what is stored, {times}: it says {older_source}"
)


def times(n: int) -> str:
    """Once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")


def _instant(at: datetime | None) -> str:
    return "an unknown time" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
