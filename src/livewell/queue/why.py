"""Why a job is not running: the database's answer, and the same in words (Q15). Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Why:
    """The first thing that stands in a job's way.

    See why_job.sql for the reasons and what goes with each.
    """

    job_id: int
    reason: str
    n: int | None
    of_limit: int | None
    other_id: int | None
    name: str | None
    since: datetime | None
    wait_seconds: float | None

    def without_errors(self) -> Why:
        """The same, without what a failure said: for people who may see no errors."""
        return replace(self, name=None) if self.reason in _SAYING_WHY else self

    @property
    def words(self) -> str:
        """One sentence for the person who asked."""
        return _WORDS[self.reason].format(
            id=self.job_id,
            n=self.n,
            limit=self.of_limit,
            other=f"job {self.other_id}" if self.other_id is not None else "a job that ends just now",
            name=self.name,
            since=self.since_words,
            wait=spelled(self.wait_seconds),
            why=f" ({self.name})" if self.name else "",
        )

    @property
    def since_words(self) -> str:
        """The instant of the answer, as the sentence has it."""
        return "" if self.since is None else f"{self.since:%Y-%m-%d %H:%M:%S %Z}"


_SAYING_WHY = ("cancelled", "dead", "delayed")  # name is the text of a failure

_WORDS = {
    "running": "it is running, on worker {name}, since {since}",
    "succeeded": "it has succeeded, at {since}",
    "cancelled": "it was cancelled, at {since}{why}",
    "dead": "it is a dead letter since {since}{why}; see: livewell dead show {id}",
    "unknown": "there is no job with that id, and no finished one (history is kept for some days)",
    "delayed": "it is delayed until {since}, for {wait} more{why}; run it now with: livewell jobs retry {id}",
    "held_key": "it is held behind {other}, which has the same unique key {name}",
    "held_group": "its group {name} is full: {n} of {limit} run, the oldest is {other}",
    "key_limit": "its key {name} is in use: {n} of {limit} run under the same limiter, the oldest is {other}",
    "paused": "its queue {name} is paused since {since}; go on with: livewell queues resume {name}",
    "no_worker": "no worker works its queue {name}; start one with: livewell worker --queue {name}",
    "no_task": "workers work its queue, but none of them has the task {name}: deploy the code that has it",
    "no_credential": "workers work its queue, but none of them has a credential of {name}: see livewell doctor",
    "suspect": "{n} of {limit} workers died while they held it: it waits for a worker that holds nothing else",
    "queue_limit": "its queue {name} is full: {n} of {limit} run",
    "concurrency": "its limiter {name} is full: {n} of {limit} calls run",
    "rate": "the rate of its limiter {name} is used up; the next call may go in {wait}",
    "budget": "the budget of its limiter {name} is used up; there is room again in {wait} at the earliest",
    "breaker": "the breaker of its limiter {name} is open, for {wait} more",
    "probe": "the breaker of its limiter {name} is half open: one call is trying whether the upstream is back",
    "upstream": "the upstream of its limiter {name} asked for silence, for {wait} more",
    "restart": "the database was restarted: before its limiter {name} allows a call, every worker says what it "
    "heard from the upstream meanwhile; that takes {wait} at most",
    "behind": "it is ready, behind {n} others of its queue {name}",
    "next": "nothing: it is the next of its queue {name}, and a worker should take it within a second or two",
}


def spelled(seconds: float | None) -> str:
    """A duration as people say it; two units are enough."""
    if seconds is None:
        return "a while"
    if seconds < 60:
        return f"{seconds:.1f} s"
    parts = [(86400, "d"), (3600, "h"), (60, "min"), (1, "s")]
    words: list[str] = []
    left = round(seconds)
    for size, unit in parts:
        if left >= size and len(words) < 2:
            words.append(f"{left // size} {unit}")
            left %= size
    return " ".join(words)
