"""Is what people watch being refreshed?

Checks of the doctor: types that are never refreshed and why, what upstreams refuse, keys that fail,
viewers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livewell.finding import Check, Finding, Patient, instant, span
from livewell.refresh.nudges import DUE
from livewell.refresh.queues import ALL_QUEUES
from livewell.telemetry.system_state import Document, part

_QUIET = """
SELECT count(*) FILTER (WHERE livewell.verdict(t, l, n.at) NOT IN ('fresh', 'unverifiable'))
FROM (SELECT livewell.now() AS at) n JOIN livewell.data_type t ON t.name = %s
CROSS JOIN LATERAL (SELECT k FROM livewell.ledger k WHERE k.data_type = %s ORDER BY k.key LIMIT 5000) AS x (l)
WHERE (l).due_at IS NOT NULL AND (l).status_at < n.at - interval '1 minute'
"""
# Watched keys whose last attempt failed and whose value is stale, by reason. Bounded: of a type
# 50,000 keys are looked at, and 5,000 failures judged.
_FAILING = """
SELECT f.reason, count(*) AS n, min(f.failing_since) AS since, min(f.key) AS key, max(f.error) AS error
FROM (SELECT (l).reason, (l).failing_since, (l).key, (l).error
      FROM (SELECT livewell.now() AS at) n JOIN livewell.data_type t ON t.name = %s
      CROSS JOIN LATERAL (SELECT x.l FROM (SELECT k FROM livewell.ledger k WHERE k.data_type = %s ORDER BY k.key LIMIT 50000) AS x (l)
                          WHERE (x.l).failing_since IS NOT NULL AND (x.l).due_at IS NOT NULL LIMIT 5000) AS o (l)
      WHERE livewell.verdict(t, l, n.at) = 'failing') f
GROUP BY f.reason ORDER BY count(*) DESC, f.reason LIMIT 5
"""
_QUIET_OUTCOMES = frozenset(
    {"stored", "corrected", "unchanged", "missing", "type_changed", "singly", "forgotten", "fenced"}
)
_REFUSALS = {
    "rate_wall": (
        "upstream_429",
        "answered 429, too many requests",
        (
            "The upstream allows fewer calls than the limiter does, or somebody else uses the same credential. Each "
            "such call is wasted, and the upstream is left alone for as long as it says."
        ),
        (
            "lower `rate` in the file of upstream {upstream}, then: livewell types apply FILE; a silence that is "
            "too long ends with: livewell upstreams resume {upstream}"
        ),
    ),
    "bandwidth_wall": (
        "upstream_bandwidth",
        "said that its bandwidth is used up",
        "The plan's bytes are gone, whatever our own count says. The breaker stays open for hours.",
        "set `budget` in the file of upstream {upstream} to what the plan has, then: livewell types apply FILE",
    ),
    "auth": (
        "upstream_credential",
        "did not accept the credential",
        "The key is wrong, revoked or expired: every call with it fails.",
        "set the environment variable that upstream {upstream} names in `credentials`, and start the workers again",
    ),
    "suspended": (
        "upstream_credential",
        "said that the account is suspended",
        "No call will succeed until the account is open again.",
        "ask the provider; meanwhile: livewell types pause --upstream {upstream}",
    ),
}
_LIMITED = {
    "breaker": "livewell upstreams probe {name}",
    "upstream": "livewell upstreams resume {name}",
    "budget": "livewell plan",
}


async def types(patient: Patient) -> Sequence[Finding]:
    """Watched, not fresh, and not refreshed once in a day."""
    found = []
    for one in part(patient.state, "refresh").get("types", ()):
        stopped = one["paused_at"] or one["upstream_paused_at"] or one["parked_reason"]
        if one["refreshed_day"] and not stopped:
            continue
        quiet = one["quiet"] or await _quiet(patient, one["name"])
        if quiet:
            why, command = _why_never(patient.state, one)
            seen = (
                f"Of type {one['name']} {quiet:,} watched keys are not fresh, and {one['refreshed_day']:,} were "
                "refreshed in the last day."
            )
            found.append(Finding("type_never_refreshes", one["name"], seen, why, command))
    return found


async def _quiet(patient: Patient, name: str) -> int:
    """Watched keys that are not fresh, counted.

    A type with few keys may not be in a sample of a large ledger.
    """
    if part(patient.state, "refresh").get("how") == "exact":
        return 0
    [(quiet,)] = await patient.database.call(_QUIET, (name, name))
    return int(quiet)


def _why_never(state: Document, one: dict[str, Any]) -> tuple[str, str]:
    """The first thing that stands in its way, and what removes it."""
    nothing = "Nothing was tried, and nothing stands in its way that is known.", f"livewell types show {one['name']}"
    return _stopped(one) or _unworked(state, one) or _limited(state, one) or _refused(one) or nothing


def _stopped(one: dict[str, Any]) -> tuple[str, str] | None:
    """By somebody, or because the plan does not have it."""
    name, upstream = one["name"], one["upstream"]
    if one["paused_at"]:
        return f"The type is paused since {instant(one['paused_at'])}.", f"livewell types resume {name}"
    if one["upstream_paused_at"]:
        since = instant(one["upstream_paused_at"])
        return f"Upstream {upstream} is paused since {since}.", f"livewell types resume --upstream {upstream}"
    if one["parked_reason"]:
        means = f"The plan does not include this endpoint ({one['parked_reason']})."
        return means, f"change the plan, then: livewell types resume {name}"
    return None


def _unworked(state: Document, one: dict[str, Any]) -> tuple[str, str] | None:
    """Nobody works its queue, or nobody does the due check."""
    queue = next((each for each in part(state, "queue").get("queues", ()) if each["name"] == one["queue"]), None)
    if queue is None or not queue["workers"]:
        return f"No living worker works its queue {one['queue']}.", f"livewell worker --queue {one['queue']}"
    if queue["paused_at"]:
        return f"Its queue {one['queue']} is paused.", f"livewell queues resume {one['queue']}"
    due = next((each for each in part(state, "leases").get("singletons", ()) if each["name"] == DUE), None)
    if due is None or not due["held"]:
        return (
            "Nobody does the due check: no worker has queues of refreshes.",
            f"livewell worker --queue '{ALL_QUEUES}'",
        )
    return None


def _limited(state: Document, one: dict[str, Any]) -> tuple[str, str] | None:
    for limiter in part(state, "limits").get("limiters", ()):
        if limiter["name"] == one["upstream"] and limiter["waits_for"] in ("breaker", "budget", "upstream"):
            means = (
                f"Calls to {limiter['name']} are stopped: {limiter['waits_for']}, for {span(limiter['wait_seconds'])}."
            )
            return means, _LIMITED[limiter["waits_for"]].format(name=limiter["name"])
    return None


def _refused(one: dict[str, Any]) -> tuple[str, str] | None:
    refused = {word: n for word, n in one["outcomes"].items() if word not in _QUIET_OUTCOMES}
    if not refused:
        return None
    word = max(refused, key=refused.__getitem__)
    means = f"Its answers are refused: {word}, {refused[word]:,} times in this hour and the last."
    return means, f"livewell types sample {one['name']} KEY"


async def refusals(patient: Patient) -> Sequence[Finding]:
    """What upstreams say of us."""
    return [
        Finding(
            word,
            one["name"],
            f"Upstream {one['upstream']} {seen}: {one['outcomes'][reason]:,} times for type {one['name']}, in "
            "this hour and the last.",
            means,
            command.format(upstream=one["upstream"]),
        )
        for one in part(patient.state, "refresh").get("types", ())
        for reason, (word, seen, means, command) in _REFUSALS.items()
        if one["outcomes"].get(reason)
    ]


async def failing(patient: Patient) -> Sequence[Finding]:
    """Watched keys that fail, by type: what failed, how many, since when."""
    found = []
    for one in part(patient.state, "refresh").get("types", ()):
        if not one["keys"].get("failing"):
            continue
        rows = await patient.rows(_FAILING, one["name"], one["name"])
        if not rows:
            continue  # mended since the state was sampled
        reasons = ", ".join(f"{row['n']:,} × {row['reason']}" for row in rows)
        first = rows[0]
        seen = (
            f"Of type {one['name']} {sum(row['n'] for row in rows):,} watched keys fail ({reasons}), the first "
            f"since {instant(min(row['since'] for row in rows).isoformat())}; {first['key']}: "
            f"{first['error'] or 'no error text'}"
        )
        means = (
            "What is shown of them is old, and says so. They are tried again by themselves, less and less often, "
            "every six hours at the least; when the cause is gone they recover."
        )
        found.append(Finding("keys_failing", one["name"], seen, means, f"livewell why {one['name']} {first['key']}"))
    return found


async def viewers(patient: Patient) -> Sequence[Finding]:
    """Subscriptions, and nobody behind them: heartbeats do not arrive, so nothing is refreshed."""
    found = part(patient.state, "refresh")
    if not found or not found["subscriptions"] or found["sessions"]:
        return []
    return [
        Finding(
            "no_viewers",
            "viewers",
            f"There are {found['subscriptions']:,} subscriptions, and no session was seen within five minutes.",
            "Nobody counts as a viewer, so nothing is refreshed on demand. Either everybody left and no worker "
            "sweeps, or heartbeats (PUT /v1/sessions/ID, every 60 s) do not arrive.",
            "curl -i -X PUT SERVER/v1/sessions/ID from where the clients are; if nobody should be there: "
            f"livewell worker --queue '{ALL_QUEUES}' sweeps them",
            level="P2",
        )
    ]


CHECKS: tuple[Check, ...] = (
    types,
    refusals,
    failing,
    viewers,
)
