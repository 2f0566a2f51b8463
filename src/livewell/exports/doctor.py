"""Are exports made?

Checks of the doctor: the store does not answer, rendering processes die, users near their quota,
files that wait to be removed, exports that wait with nobody to render them.
"""

from __future__ import annotations

from collections.abc import Sequence

from livewell.finding import Check, Finding, Patient, span
from livewell.telemetry.system_state import part

_WAIT_SECONDS = 60.0
_CLEANUP_SECONDS = 600.0
_DEATHS = 3
_NEAR = 0.9


async def store(patient: Patient) -> Sequence[Finding]:
    """Workers that do not reach the store."""
    return [
        Finding(
            "export_store_away",
            one["name"],
            f"Worker {one['name']} has not reached the store of exports for {span(one['store_seconds'])}: "
            f"{one['store_reason']}.",
            "Exports are tried again for about 15 minutes, then they are dead letters. No file is lost.",
            "mend the store or its settings (LIVEWELL_EXPORT_STORE …), then: livewell dead redrive --queue exports",
        )
        for one in part(patient.state, "exports").get("renderers", ())
        if one["store_reason"] is not None
    ]


async def children(patient: Patient) -> Sequence[Finding]:
    """Workers whose rendering processes die while they start."""
    return [
        Finding(
            "export_children_dying",
            one["name"],
            f"{one['spare_deaths']:,} rendering processes of worker {one['name']} died while they started, "
            "within ten minutes.",
            "It renders nothing, or slowly: each document waits for a process that starts.",
            "pip install 'livewell[exports]' where the worker runs; then look at its log, and at the memory of its machine",
        )
        for one in part(patient.state, "exports").get("renderers", ())
        if one["spare_deaths"] >= _DEATHS
    ]


async def quotas(patient: Patient) -> Sequence[Finding]:
    """Users who have nearly no room left."""
    found = []
    for one in part(patient.state, "exports").get("largest", ()):
        used, most = one["stored_bytes"] + one["reserved_bytes"], one["bytes_max"]
        if most is not None and used >= _NEAR * most:
            found.append(
                Finding(
                    "export_quota_near",
                    one["user"],
                    f"User {one['user']} uses {used / 1e6:,.1f} of {most / 1e6:,.1f} MB for files of exports.",
                    "Soon their requests are refused with 507, until files expire or are deleted.",
                    f"livewell exports list --user '{one['user']}'; a larger quota: LIVEWELL_EXPORT_USER_BYTES_MAX",
                    level="P2",
                )
            )
    return found


async def cleanup(patient: Patient) -> Sequence[Finding]:
    """Files that nothing points to, and that are still there."""
    found = part(patient.state, "exports").get("cleanup", {})
    late = found.get("oldest_seconds")
    if late is None or late < _CLEANUP_SECONDS:
        return []
    return [
        Finding(
            "export_cleanup_late",
            "exports",
            f"{found['removing']:,} files of exports wait to be removed, or expired and were not taken up; the oldest "
            f"since {span(late)}.",
            "Nobody can fetch them, and they count for nobody; they take room in the store.",
            "livewell exports cleanup; it says why a file stays",
            level="P2",
        )
    ]


async def nobody(patient: Patient) -> Sequence[Finding]:
    """Exports wait, and no worker renders."""
    state = part(patient.state, "exports")
    oldest = state.get("oldest_seconds")
    if oldest is None or oldest < _WAIT_SECONDS or state.get("renderers"):
        return []
    return [
        Finding(
            "export_without_worker",
            "exports",
            f"{state['waiting']:,} exports wait, the oldest for {span(oldest)}, and no worker renders.",
            "No worker has the queue exports, or those that have it do not live.",
            "livewell worker APP (a worker without --queue has the queue exports, too)",
            level="P0",
        )
    ]


CHECKS: tuple[Check, ...] = (store, children, quotas, cleanup, nobody)
