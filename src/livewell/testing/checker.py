"""Compare the upstream's own log with what the database says, and tell the differences in words.

The rows come from the test's own queries, as plain values: the checker knows no table, and asserts
nothing. An empty list means that the two histories agree.

    violations = HistoryChecker(upstream.log.read()).check_calls(finished, dead=dead)
    assert violations == []
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from livewell.testing.call_windows import busiest_window, overlaps
from livewell.testing.upstream.call import Call

__all__ = ["HistoryChecker"]

Unit = Literal["calls", "wire_bytes", "body_bytes", "content_bytes"]
Claim = tuple[int, int]  # job id, fence


@dataclass(frozen=True, slots=True)
class HistoryChecker:
    """The upstream's log; each check answers with its violations."""

    calls: list[Call]

    def check_calls(
        self,
        finished: Iterable[Claim],
        *,
        dead: Iterable[Claim] = (),
        running: Iterable[Claim] = (),
        calls_per_claim_max: int = 1,
    ) -> list[str]:
        """Compare with the (job id, fence) of every job that succeeded, is a dead letter, or is
        still claimed.

        A call with an older fence of a known job is an earlier attempt, which the database need not
        remember. Several calls of one claim are a request sent twice, unless the task makes
        several.
        """
        by_claim: dict[Claim, list[Call]] = defaultdict(list)
        for call in self.calls:
            for claim in set(call.jobs):
                by_claim[claim].append(call)
        succeeded = set(finished)
        last: dict[int, int] = {}
        for job, fence in [*succeeded, *dead, *running]:
            last[job] = max(fence, last.get(job, fence))
        return [
            *(
                f"{_named(claim)} succeeded, but {why}"
                for claim in sorted(succeeded)
                if (why := _unheard(by_claim.get(claim, [])))
            ),
            *(
                f"{_call(call)} names no job: X-Livewell-Call is {call.call_id!r}"
                for call in self.calls
                if not call.jobs
            ),
            *_strangers(by_claim, last),
            *(
                f"{_named(claim)} called {len(made)} times, allowed are {calls_per_claim_max}: {_calls(made)}"
                for claim, made in sorted(by_claim.items())
                if len(made) > calls_per_claim_max
            ),
        ]

    def check_usage(self, booked_units: Mapping[str, int], *, unit: Unit = "calls", slack_units: int = 0) -> list[str]:
        """Compare the units booked per credential (as the log names it) with the log; both ways,
        within the slack.
        """
        seen: Counter[str] = Counter()
        for call in self.calls:
            seen[call.credential] += 1 if unit == "calls" else getattr(call, unit)
        return [
            f"credential {name!r}: booked are {booked_units.get(name, 0)} {unit}, the upstream counted {seen[name]}"
            for name in sorted({*seen, *booked_units})
            if abs(booked_units.get(name, 0) - seen[name]) > slack_units
        ]

    def check_limit(self, limit: int, window_seconds: float) -> list[str]:
        """Look for a window with more calls of one credential than the limit allows."""
        by_credential: dict[str, list[Call]] = defaultdict(list)
        for call in self.calls:
            by_credential[call.credential].append(call)
        found = {name: busiest_window(made, window_seconds) for name, made in sorted(by_credential.items())}
        return [
            f"credential {name!r}: {window.calls} calls within {window_seconds} s from {window.start_ns} ns, "
            f"allowed are {limit}"
            for name, window in found.items()
            if window.calls > limit
        ]

    def check_concurrency(self, *, total: int | None = None, per_key: int | None = None) -> list[str]:
        """Look for an instant with more calls in flight than allowed."""
        most = overlaps(self.calls)
        told = (
            [f"{most.total} calls in flight at once, allowed are {total}"]
            if total is not None and most.total > total
            else []
        )
        if per_key is None:
            return told
        over = {key: count for key, count in sorted(most.per_key.items()) if count > per_key}
        return told + [
            f"key {key!r}: {count} calls in flight at once, allowed are {per_key}" for key, count in over.items()
        ]

    def check_versions(self, stored: Mapping[str, int]) -> list[str]:
        """Look for stored versions that the upstream never sent for that key: another key's, or
        half of an answer's.
        """
        sent: dict[str, set[int]] = defaultdict(set)
        for call in self.calls:
            # Of a call that was killed or is open nobody knows how much the client got.
            if call.ending in ("answered", "killed", None):
                for key, version in call.versions.items():
                    sent[key].add(version)
        return [
            f"key {key!r}: version {version} is stored, but was never sent in full; the newest sent is "
            f"{max(sent[key], default=None)}"
            for key, version in sorted(stored.items())
            if version not in sent[key]
        ]


def _unheard(made: list[Call]) -> str:
    if not made:
        return "the upstream never saw a call of it"
    # Killed or still open: the answer may have been complete.
    if all(call.ending in ("cut", "client_left", "stopped") for call in made):
        return f"none of its calls was answered in full: {_calls(made)}"
    return ""


def _strangers(by_claim: Mapping[Claim, list[Call]], last: Mapping[int, int]) -> list[str]:
    told = []
    for (job, fence), made in sorted(by_claim.items()):
        if job not in last:
            told.append(f"{_calls(made)} for {_named((job, fence))}: the database knows no such job")
        elif fence > last[job]:
            told.append(f"{_calls(made)} for {_named((job, fence))}: the database's last fence of it is {last[job]}")
    return told


def _named(claim: Claim) -> str:
    return f"job {claim[0]} (fence {claim[1]})"


def _call(call: Call) -> str:
    return f"call {call.number} ({call.method} {call.path}, {call.status}, {call.ending or 'open'})"


def _calls(calls: list[Call]) -> str:
    return ", ".join(_call(call) for call in calls)
