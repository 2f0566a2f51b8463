"""Every gauge, and where in the system state it is. A gauge whose figure is not known now has no sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from livewell.operations.state import Document, part

__all__ = ["GAUGES", "Gauge"]

Sample = tuple[Sequence[str], float | None]
_BREAKER = {"closed": 0, "half_open": 1, "open": 2}
_STATES = ("ready", "delayed", "held", "running")


@dataclass(frozen=True, slots=True)
class Gauge:
    """One gauge: its name, what it says, its labels, and where in the state it is."""

    name: str
    about: str
    labels: tuple[str, ...]
    samples: Callable[[Document], Iterable[Sample]]


def _each(name: str, where: str, labels: Sequence[str], figure: str) -> Callable[[Document], Iterator[Sample]]:
    """A figure of every item of a list in a part of the state."""

    def samples(document: Document) -> Iterator[Sample]:
        for item in part(document, name).get(where, ()):
            yield [_label(item[label]) for label in labels], _number(item[figure])

    return samples


def _one(name: str, figure: str) -> Callable[[Document], Iterator[Sample]]:
    """A figure of a part of the state."""

    def samples(document: Document) -> Iterator[Sample]:
        yield (), _number(part(document, name).get(figure))

    return samples


def _jobs(document: Document) -> Iterator[Sample]:
    for queue in part(document, "queue").get("queues", ()):
        for state in _STATES:
            yield (queue["name"], state), queue[state]


def _paused(document: Document) -> Iterator[Sample]:
    for queue in part(document, "queue").get("queues", ()):
        yield (queue["name"],), int(queue["paused_at"] is not None)


def _dead(document: Document) -> Iterator[Sample]:
    for queue in part(document, "queue").get("queues", ()):
        for reason, n in queue["dead_reasons"].items():
            yield (queue["name"], reason), n


def _workers(document: Document) -> Iterator[Sample]:
    versions: dict[str, int] = {}
    for worker in part(document, "queue").get("workers", ()):
        if worker["lease_left_seconds"] > 0:
            versions[worker["version"]] = versions.get(worker["version"], 0) + 1
    return (((version,), n) for version, n in sorted(versions.items()))


def _breakers(document: Document) -> Iterator[Sample]:
    for one in part(document, "limits").get("limiters", ()):
        yield (one["name"], one["credential"]), _BREAKER[one["breaker"]]


def _budget_used(document: Document) -> Iterator[Sample]:
    for one in part(document, "limits").get("limiters", ()):
        if one["budget_units"] is not None:
            yield (one["name"], one["credential"], one["budget_unit"]), one["used"] + one["reserved"]


def _budget_remaining(document: Document) -> Iterator[Sample]:
    for one in part(document, "limits").get("limiters", ()):
        if one["budget_units"] is not None:
            left = max(one["budget_units"] - one["used"] - one["reserved"], 0)
            yield (one["name"], one["credential"], one["budget_unit"]), left


def _keys(document: Document) -> Iterator[Sample]:
    for one in part(document, "refresh").get("types", ()):
        for verdict, n in one["keys"].items():
            yield (one["name"], verdict), n


def _outcomes(document: Document) -> Iterator[Sample]:
    for one in part(document, "refresh").get("types", ()):
        for outcome, n in one["outcomes"].items():
            yield (one["name"], outcome), n


def _accuracy(document: Document) -> Iterator[Sample]:
    for one in part(document, "refresh").get("types", ()):
        if one["size_measured"] and one["size_estimate"]:
            yield (one["name"],), one["size_measured"] / one["size_estimate"]


def _due_check(document: Document) -> Iterator[Sample]:
    mean = part(document, "refresh").get("due_check", {}).get("mean_ms")
    yield (), None if mean is None else mean / 1000


def _warnings(document: Document) -> Iterator[Sample]:
    for one in part(document, "database").get("warnings", ()):
        yield (one["place"], one["what"]), one["this_hour"] + one["last_hour"]


def _paused_schedules(document: Document) -> Iterator[Sample]:
    for one in part(document, "schedules").get("schedules", ()):
        yield (one["name"],), int(one["state"] == "paused")


def _late(document: Document) -> Iterator[Sample]:
    """Every one that there is, and a loop that never turned."""
    found = part(document, "schedules")
    late = {one["name"] for one in found.get("late", ())}
    for name in sorted(late | {one["name"] for one in found.get("schedules", ())}):
        yield (name,), int(name in late)


def _ended_badly(document: Document) -> Iterator[Sample]:
    for one in part(document, "schedules").get("schedules", ()):
        if one["last"] is not None:
            yield (one["name"],), int(one["last"] in ("failed", "crashed"))


def _alerts(document: Document) -> Iterator[Sample]:
    for one in part(document, "alerts").get("rules", ()):
        for state in ("fired", "cooling"):
            yield (one["name"], one["level"], state), one[state]


def _disabled(document: Document) -> Iterator[Sample]:
    for one in part(document, "alerts").get("channels", ()):
        yield (one["name"],), int(one["disabled_at"] is not None)


def _release(document: Document) -> Iterator[Sample]:
    yield (part(document, "database").get("release", "unknown"),), 1


def _ages(document: Document) -> Iterator[Sample]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield (name,), value.get("sample_age_seconds", 0.0)


def _how(word: str) -> Callable[[Document], Iterator[Sample]]:
    def samples(document: Document) -> Iterator[Sample]:
        for name, value in document.items():
            if isinstance(value, dict):
                yield (name,), int(value.get("how") == word)

    return samples


_QUEUE, _LIMITER, _TYPE = ("name",), ("name", "credential"), ("name",)

GAUGES = (
    Gauge("livewell_release_info", "The release of the schema.", ("release",), _release),
    Gauge(
        "livewell_state_seconds",
        "How long the state took to read.",
        (),
        lambda document: [((), document["took_ms"] / 1000)],
    ),
    Gauge("livewell_state_sample_age_seconds", "How old the figures of a part are; 0: exact now.", ("part",), _ages),
    Gauge(
        "livewell_state_estimated",
        "1: the figures of a part are estimated from a sample.",
        ("part",),
        _how("estimated"),
    ),
    Gauge("livewell_state_failed", "1: a part of the state could not be read.", ("part",), _how("failed")),
    Gauge("livewell_database_bytes", "Size of the database.", (), _one("database", "bytes")),
    Gauge("livewell_database_connections", "Connections to the database.", (), _one("database", "connections")),
    Gauge(
        "livewell_database_oldest_transaction_seconds",
        "Age of the oldest open transaction.",
        (),
        _one("database", "oldest_transaction_seconds"),
    ),
    Gauge("livewell_warnings", "Tolerated failures in this hour and the one before.", ("place", "what"), _warnings),
    Gauge("livewell_jobs", "Live jobs by queue and state.", ("queue", "state"), _jobs),
    Gauge("livewell_dead_jobs", "Dead letters by queue and reason.", ("queue", "reason"), _dead),
    Gauge("livewell_queue_depth", "Jobs that could run now.", ("queue",), _each("queue", "queues", _QUEUE, "ready")),
    Gauge("livewell_queue_paused", "1: the queue is paused.", ("queue",), _paused),
    Gauge(
        "livewell_queue_workers",
        "Workers with a lease that work the queue.",
        ("queue",),
        _each("queue", "queues", _QUEUE, "workers"),
    ),
    Gauge(
        "livewell_queue_oldest_ready_seconds",
        "How long the first in line waits.",
        ("queue",),
        _each("queue", "queues", _QUEUE, "oldest_ready_seconds"),
    ),
    Gauge(
        "livewell_queue_background_waits_seconds",
        "How long the first in the background lane waits.",
        ("queue",),
        _each("queue", "queues", _QUEUE, "background_waits_seconds"),
    ),
    Gauge(
        "livewell_queue_done_per_minute",
        "Jobs that succeeded, per minute over five.",
        ("queue",),
        _each("queue", "queues", _QUEUE, "done_per_minute"),
    ),
    Gauge(
        "livewell_queue_other_per_minute",
        "Attempts that ended otherwise, per minute over five.",
        ("queue",),
        _each("queue", "queues", _QUEUE, "other_per_minute"),
    ),
    Gauge(
        "livewell_queue_mean_ms",
        "How long a job takes, over five minutes.",
        ("queue",),
        _each("queue", "queues", _QUEUE, "mean_ms"),
    ),
    Gauge(
        "livewell_jobs_overdue",
        "Delayed jobs past their time by a minute, up to 10,000.",
        (),
        _one("queue", "overdue_delayed"),
    ),
    Gauge(
        "livewell_history_rows", "Finished jobs that are kept, by the statistics.", (), _one("queue", "history_rows")
    ),
    Gauge("livewell_workers", "Workers with a lease, by version.", ("version",), _workers),
    Gauge(
        "livewell_worker_lease_left_seconds",
        "What is left of a worker's lease; below 0: expired.",
        ("worker", "id"),
        _each("queue", "workers", ("name", "id"), "lease_left_seconds"),
    ),
    Gauge(
        "livewell_worker_holds",
        "Jobs a worker holds.",
        ("worker", "id"),
        _each("queue", "workers", ("name", "id"), "holds"),
    ),
    Gauge(
        "livewell_limiter_rate_used",
        "Calls granted in the window.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "spent"),
    ),
    Gauge(
        "livewell_limiter_rate_limit",
        "Calls allowed in the window.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "rate_calls"),
    ),
    Gauge(
        "livewell_limiter_running",
        "Calls that run.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "running"),
    ),
    Gauge(
        "livewell_limiter_wait_seconds",
        "How long until a call is allowed.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "wait_seconds"),
    ),
    Gauge(
        "livewell_limiter_calls",
        "Calls that ended in the last ten minutes.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "calls"),
    ),
    Gauge(
        "livewell_limiter_failures",
        "Of those, failures blamed on the upstream.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "failures"),
    ),
    Gauge("livewell_limiter_breaker", "0 closed, 1 half open, 2 open.", ("limiter", "credential"), _breakers),
    Gauge(
        "livewell_budget_used",
        "Units used and reserved in the span of the budget.",
        ("limiter", "credential", "unit"),
        _budget_used,
    ),
    Gauge(
        "livewell_budget_remaining",
        "Units left in the span of the budget.",
        ("limiter", "credential", "unit"),
        _budget_remaining,
    ),
    Gauge(
        "livewell_budget_limit",
        "Units of the budget.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "budget_units"),
    ),
    Gauge(
        "livewell_budget_left_seconds",
        "When the budget is reached, at the pace of the last day.",
        ("limiter", "credential"),
        _each("limits", "limiters", _LIMITER, "budget_left_seconds"),
    ),
    Gauge("livewell_viewers", "People who watch something.", (), _one("refresh", "viewers")),
    Gauge("livewell_sessions", "Sessions seen within five minutes.", (), _one("refresh", "sessions")),
    Gauge(
        "livewell_subscriptions", "Subscriptions by type.", ("type",), _each("refresh", "types", _TYPE, "subscriptions")
    ),
    Gauge("livewell_keys", "Keys by type and verdict; parked: nobody watches.", ("type", "verdict"), _keys),
    Gauge(
        "livewell_type_refreshed",
        "Refreshes that were good, in this hour and the one before.",
        ("type",),
        _each("refresh", "types", _TYPE, "refreshed"),
    ),
    Gauge(
        "livewell_type_refused",
        "Answers that were refused, in this hour and the one before.",
        ("type",),
        _each("refresh", "types", _TYPE, "refused"),
    ),
    Gauge(
        "livewell_type_outcomes",
        "What became of refreshes, in this hour and the one before.",
        ("type", "outcome"),
        _outcomes,
    ),
    Gauge("livewell_type_size_ratio", "Measured size of an answer over its estimate.", ("type",), _accuracy),
    Gauge(
        "livewell_due_keys",
        "Keys that are due and not queued, up to 10,000.",
        ("upstream",),
        _each("refresh", "due", ("upstream",), "keys"),
    ),
    Gauge(
        "livewell_due_oldest_seconds",
        "How long the oldest of them is due.",
        ("upstream",),
        _each("refresh", "due", ("upstream",), "oldest_seconds"),
    ),
    Gauge("livewell_due_check_seconds", "How long a due check takes, over five minutes.", (), _due_check),
    Gauge(
        "livewell_singleton_held",
        "1: somebody holds the lease.",
        ("singleton", "holder"),
        _each("leases", "singletons", ("name", "holder"), "held"),
    ),
    Gauge(
        "livewell_singleton_held_seconds",
        "For how long one term holds it.",
        ("singleton",),
        _each("leases", "singletons", ("name",), "held_seconds"),
    ),
    Gauge(
        "livewell_tick_age_seconds",
        "Since internal upkeep last ran.",
        ("tick",),
        _each("leases", "ticks", ("name",), "last_seconds"),
    ),
    Gauge("livewell_schedule_late", "1: it has not run when it should have.", ("schedule",), _late),
    Gauge("livewell_schedule_paused", "1: it is paused.", ("schedule",), _paused_schedules),
    Gauge("livewell_schedule_failed", "1: its last run failed or crashed.", ("schedule",), _ended_badly),
    Gauge(
        "livewell_schedule_due_seconds",
        "Until its next slot; below 0: overdue.",
        ("schedule",),
        _each("schedules", "schedules", ("name",), "due_seconds"),
    ),
    Gauge("livewell_alerts", "Alerts that have fired, or cool down, by rule.", ("rule", "level", "state"), _alerts),
    Gauge(
        "livewell_alert_rule_failed",
        "1: the rule could not be evaluated.",
        ("rule",),
        _each("alerts", "rules", ("name",), "failed"),
    ),
    Gauge("livewell_alert_channel_disabled", "1: its receiver is gone.", ("channel",), _disabled),
    Gauge(
        "livewell_alert_channel_waiting",
        "Notifications that have not been told yet, up to 1,000.",
        ("channel",),
        _each("alerts", "channels", ("name",), "waiting"),
    ),
)


def _label(value: object) -> str:
    return "" if value is None else str(value)


def _number(value: Any) -> float | None:
    """Numbers as they are; true is 1, false is 0, and what is not known stays unknown."""
    return None if value is None else float(value)
