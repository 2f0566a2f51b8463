"""Is a verdict true?

What the product said of a key at an instant is compared with what the log shows was served by then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from livewell.apps.market.simulator.data.dataset import DATASETS, PATHS
from livewell.apps.market.simulator.oracle.evidence import Evidence, Seen, is_true
from livewell.apps.market.simulator.oracle.same_value import instant

__all__ = ["DEADLINE_SECONDS", "Claim", "Interval", "contradiction"]

Verdict = Literal["fresh", "stale", "lagging", "unverifiable", "missing", "failing"]
CERTAIN = ("ok", "not_modified", "added_field")  # answers that nobody has a reason to refuse
DEADLINE_SECONDS = 10.0
Interval = tuple[float, float]  # Unix seconds


@dataclass(frozen=True, slots=True)
class Claim:
    """What the product said of a key at an instant.

    ttl_seconds None: its age is not judged (the exchange is closed).
    """

    type: str
    key: str
    verdict: Verdict
    at: datetime
    ttl_seconds: float | None
    max_source_age_seconds: float | None = None


def contradiction(
    evidence: Evidence, dataset: str, claim: Claim, slack_seconds: float, lost: Sequence[Interval] = ()
) -> str | None:
    """Say why a claim is false; None when the log does not contradict it. lost: when what was
    served may have died with whoever asked.
    """
    seen = evidence.seen(dataset, claim.key)
    if claim.verdict in ("fresh", "lagging", "unverifiable"):
        return _younger_than_served(evidence, dataset, claim, seen, slack_seconds)
    kept = [one for one in seen if one.answer not in CERTAIN or not any(since <= one.wall <= to for since, to in lost)]
    return _older_than_served(evidence, claim, kept, slack_seconds)


def _younger_than_served(evidence: Evidence, dataset: str, claim: Claim, seen: list[Seen], slack: float) -> str | None:
    at = claim.at.timestamp()
    since = 0.0 if claim.ttl_seconds is None else at - claim.ttl_seconds - slack
    good = [one for one in seen if since <= one.wall <= at + slack and is_true(one.answer)]
    if not good:
        return "not_served"
    if claim.verdict == "unverifiable":
        return "has_a_time" if DATASETS[dataset].time_field else None
    if claim.max_source_age_seconds is None:
        return None
    limit = at - claim.max_source_age_seconds
    if claim.verdict == "fresh":
        newest = max(_source_instant(evidence, one) for one in good)
        return "too_old" if newest < limit - slack else None
    # A call takes up to its deadline, and what it brought is stored after that.
    stored = [one for one in good if one.answer in CERTAIN and one.wall <= at - slack - DEADLINE_SECONDS]
    newest = max((_source_instant(evidence, one) for one in stored), default=0.0)
    return "not_lagging" if newest > limit + slack else None


def _older_than_served(evidence: Evidence, claim: Claim, seen: list[Seen], slack: float) -> str | None:
    at = claim.at.timestamp()
    before = [one for one in seen if one.wall <= at + slack]
    if claim.verdict == "missing" and before and before[-1].answer == "unknown_symbol":
        return None
    good = [one for one in before if one.answer in CERTAIN and one.number not in evidence.unfinished]
    since = 0.0 if claim.ttl_seconds is None or claim.verdict == "missing" else at - claim.ttl_seconds + slack
    # A call takes up to its deadline, and what it brought is stored after that.
    stored = [one.wall for one in good if one.wall <= at - slack - DEADLINE_SECONDS]
    if any(since <= wall for wall in stored):
        return "was_served"
    if claim.verdict != "failing":
        return None
    last = stored[-1] if stored else 0.0  # a good answer that is still on its way ends no failure
    failed = any(one.answer not in CERTAIN and one.wall >= last for one in before)
    down = any(since <= at + slack and last <= until for since, until in evidence.downs)
    return None if failed or down else "never_failed"


def _source_instant(evidence: Evidence, seen: Seen) -> float:
    if seen.look is None:
        return 0.0
    name = PATHS[seen.look.path].time_field
    rows = evidence.rows(seen.look) if name else []
    return max((instant(row[name]) or 0.0 for row in rows), default=0.0)
