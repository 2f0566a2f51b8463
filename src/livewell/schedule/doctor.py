"""Is periodic work done? Singletons held too long or by nobody, schedules that are late."""

from __future__ import annotations

from collections.abc import Sequence

from livewell.capability import capabilities
from livewell.finding import Check, Finding, Patient, span
from livewell.telemetry.system_state import part

_EXPIRED_SECONDS = 60.0
_HELD_SECONDS_MAX = 600.0
_LATE = "SELECT * FROM livewell.late_schedules()"


async def singletons(patient: Patient) -> Sequence[Finding]:
    """Periodic work that one run has for too long, or that nobody has taken over."""
    found = []
    # Held for as long as a worker lives, term after term: their age says nothing.
    standing = {name for one in capabilities() for name in one.singletons}
    living = {one["name"] for one in part(patient.state, "queue").get("workers", ()) if one["lease_left_seconds"] > 0}
    for one in part(patient.state, "leases").get("singletons", ()):
        if (one["expired_seconds"] or 0) > _EXPIRED_SECONDS and one["name"] in standing:
            seen = f"Singleton {one['name']} expired {span(one['expired_seconds'])} ago; {one['holder']} had it."
            means = "Its holder died, and no worker has taken it over: what it does is not done by anybody."
            found.append(Finding("singleton_abandoned", one["name"], seen, means, "livewell worker APP", level="P0"))
        elif (one["held_seconds"] or 0) > _HELD_SECONDS_MAX and one["name"] not in standing:
            seen = f"Singleton {one['name']} is held by {one['holder']} for {span(one['held_seconds'])}, in one run."
            means = (
                "The run hangs or is far too slow; the next one waits for it."
                if one["holder"] in living
                else "Its holder is dead: no worker of that name lives. The next run waits for its lease."
            )
            found.append(
                Finding(
                    "singleton_held",
                    one["name"],
                    seen,
                    means,
                    f"livewell singletons take {one['name']}"
                    if one["holder"] not in living
                    else f"stop {one['holder']}, then: livewell singletons take {one['name']}",
                    level="P0",
                )
            )
    return found


async def schedules(patient: Patient) -> Sequence[Finding]:
    """Schedules past their time by more than twice their interval and a minute."""
    return [
        Finding(
            "schedule_late",
            row["name"],
            f"Schedule {row['name']} is late by {span(row['late_seconds'])}.",
            "No process that has its handler runs the scheduler, or its run before still holds the lease.",
            f"livewell worker APP, or by hand: livewell schedules run {row['name']}",
            level="P0",
        )
        for row in await patient.rows(_LATE)
    ]


CHECKS: tuple[Check, ...] = (
    singletons,
    schedules,
)
