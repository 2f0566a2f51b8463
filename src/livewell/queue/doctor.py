"""Is work being done?

Checks of the doctor: queues that do not clear, workers that are gone or of another release, dead
letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livewell.finding import Check, Finding, Patient, instant, span
from livewell.queue.stuck import ready_words
from livewell.queue.why import Why
from livewell.telemetry.system_state import part

_WAIT_SECONDS_MAX = 60.0
_STALLED_SECONDS = 600.0
_DEEP, _DEEP_SECONDS = 1000, 1800.0
_EXPIRED_SECONDS = 60.0
_QUEUES_MAX = 20
_REFRESH = "livewell.refresh"
_WHY = "SELECT * FROM livewell.why_job(%s)"
_DEAD = """
SELECT x.queue, x.kind, x.reason, count(*) AS n, max(x.error) AS error
FROM (SELECT d.queue, d.kind, d.reason, d.error FROM livewell.dead_job d WHERE d.died_at > livewell.now() - interval '1 day' ORDER BY d.died_at DESC LIMIT 10000) x
GROUP BY x.queue, x.kind, x.reason ORDER BY count(*) DESC LIMIT 20
"""


async def queues(patient: Patient) -> Sequence[Finding]:
    """What has waited for a minute or more, and why the first of it does not run."""
    waiting = [
        one
        for one in part(patient.state, "queue").get("queues", ())
        if (one["oldest_ready_seconds"] or 0) > _WAIT_SECONDS_MAX
    ]
    how = part(patient.state, "queue").get("how")
    found = []
    for queue in waiting[:_QUEUES_MAX]:
        rows = await patient.database.call(_WHY, (queue["next_id"],))
        finding = _queue(queue, how, Why(queue["next_id"], *rows[0]))
        if finding is not None:
            found.append(finding)
    if overdue := part(patient.state, "queue").get("overdue_delayed", 0):
        found.append(_overdue(overdue))
    return found


def _queue(queue: dict[str, Any], how: object, why: Why) -> Finding | None:
    name, waits = queue["name"], span(queue["oldest_ready_seconds"])
    seen = (
        f"{ready_words(queue, how)} jobs wait in queue {name}, the first of them for {waits}; "
        f"{queue['done_per_minute']:g} a minute are done."
    )
    if why.reason == "paused":
        means = f"The queue is paused since {instant(queue['paused_at'])}: nothing is claimed from it."
        return Finding("queue_paused", name, seen, means, f"livewell queues resume {name}")
    if why.reason == "no_worker":
        means = "No living worker works this queue."
        return Finding("queue_without_worker", name, seen, means, f"livewell worker APP --queue {name}", level="P0")
    if why.reason == "no_task":
        means = (
            f"Workers work this queue, but none of them has the task {why.name}: the code that has it is not deployed."
        )
        return Finding(
            "queue_without_task",
            name,
            seen,
            means,
            f"deploy the app that has the task {why.name}, then: livewell worker APP --queue {name}",
        )
    if queue["oldest_ready_seconds"] > _STALLED_SECONDS and not queue["done_per_minute"]:
        means = f"Nothing was done in five minutes. Of the first job, number {queue['next_id']}: {why.words}."
        return Finding("queue_not_clearing", name, seen, means, f"livewell jobs why {queue['next_id']}")
    if queue["ready"] > _DEEP and queue["oldest_ready_seconds"] > _DEEP_SECONDS:
        means = "More comes in than is done: work is late, and grows later."
        return Finding("queue_behind", name, seen, means, f"livewell worker APP --queue {name} --processes 2")
    return None


def _overdue(n: int) -> Finding:
    return Finding(
        "delayed_overdue",
        "delayed jobs",
        f"{n:,}{' or more' if n >= 10_000 else ''} delayed jobs are past their time by a minute or more.",
        "Nobody promotes them: any worker does so every second, so none is running, or it cannot reach the database.",
        "livewell worker APP",
        level="P0",
    )


async def credentials(patient: Patient) -> Sequence[Finding]:
    """Workers whose environment lacks a credential: they leave its calls to others."""
    return [
        Finding(
            "worker_without_credential",
            worker["name"],
            f"Worker {worker['name']} (number {worker['id']}) has no environment variable {variable}, which "
            f"upstream {upstream} names in its credentials.",
            "It claims nothing that needs it. If no other worker has it, nothing of this upstream is refreshed.",
            f"set {variable} in the environment of this worker, and start it again",
        )
        for worker in part(patient.state, "queue").get("workers", ())
        if worker["lease_left_seconds"] > 0
        for upstream, variable in (lacking.split(" ", 1) for lacking in worker["lacks"])
    ]


async def leases(patient: Patient) -> Sequence[Finding]:
    """Workers that are gone, or stand still, and whose jobs nobody has taken back."""
    return [
        Finding(
            "lease_expired",
            worker["name"],
            f"Worker {worker['name']} (number {worker['id']}) holds {worker['holds']:,} jobs, and its lease ran "
            f"out {span(-worker['lease_left_seconds'])} ago.",
            "It died or stands still, and no other worker lives that could take its jobs back.",
            "livewell worker APP",
        )
        for worker in part(patient.state, "queue").get("workers", ())
        if worker["lease_left_seconds"] < -_EXPIRED_SECONDS
    ]


async def versions(patient: Patient) -> Sequence[Finding]:
    """Workers of several releases, or of another than the schema."""
    release = part(patient.state, "database").get("release")
    by_version: dict[str, list[str]] = {}
    for worker in part(patient.state, "queue").get("workers", ()):
        if worker["lease_left_seconds"] > 0:
            by_version.setdefault(worker["version"], []).append(worker["name"])
    others = {version: names for version, names in by_version.items() if version != release}
    if not others:
        return []
    seen = "; ".join(f"{version}: {', '.join(sorted(names)[:5])}" for version, names in sorted(others.items()))
    return [
        Finding(
            "version_skew",
            "workers",
            f"The schema is of release {release}, and workers run others: {seen}.",
            "During an upgrade that is as it should be, for one minor version. Left so, old workers lack what "
            "the new schema offers, and refuse the next one.",
            f"pip install 'livewell=={release}' where they run, and start them again",
            level="P2",
        )
    ]


async def dead_letters(patient: Patient) -> Sequence[Finding]:
    """What died in the last day, by queue, task and reason."""
    reasons = {
        "attempts": "every attempt failed",
        "refused": "the task refused it for good",
        "payload": "its payload does not fit the task",
        "lost": "it took too many workers with it",
    }
    return [
        Finding(
            "dead_letters",
            row["queue"],
            f"{row['n']:,} jobs {row['kind']} of queue {row['queue']} died in the last day ({row['reason']}: "
            f"{reasons[row['reason']]}), one with: {(row['error'] or 'no error text')[:200]}",
            "The keys are refreshed again by themselves while somebody watches them; the letters tell what went wrong."
            if row["kind"] == _REFRESH
            else "They will not be tried again by themselves. Mend the cause first, then give them another life.",
            f"livewell dead list --queue {row['queue']}, then: livewell dead redrive --queue {row['queue']}",
        )
        for row in await patient.rows(_DEAD)
    ]


CHECKS: tuple[Check, ...] = (
    queues,
    leases,
    credentials,
    versions,
    dead_letters,
)
