"""Checks of the doctor: alerts that have fired, and alerts that will not come.

An alert will not come if its channel reaches nobody, or if its rule fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from livewell.finding import Check, Finding, Patient, instant
from livewell.telemetry.system_state import part

_FIRED = """
SELECT a.rule, max(a.level) AS level, count(*) AS n, min(a.id) AS id, min(a.fired_at) AS since, (array_agg(a.summary ORDER BY a.id))[1] AS summary
FROM (SELECT * FROM livewell.alert o WHERE o.state = 'fired' ORDER BY o.id LIMIT 1000) a GROUP BY a.rule ORDER BY max(a.level), a.rule LIMIT 50
"""


async def alerting(patient: Patient) -> Sequence[Finding]:
    """Channels that reach nobody, and rules that give no answer: alerts that will not come."""
    alerts = part(patient.state, "alerts")
    found = [
        Finding(
            "channel_disabled",
            one["name"],
            f"Alert channel {one['name']} is disabled since {instant(one['disabled_at'])}: its receiver "
            f"answered 410, gone. {one['waiting']:,} notifications wait for it.",
            "Nobody is told anything through it until it is enabled again.",
            f"set {one['source'].removeprefix('env:')} to an address that exists where the workers run, start "
            f"them again, then: livewell alerts enable {one['name']}",
        )
        for one in alerts.get("channels", ())
        if one["disabled_at"]
    ]
    return found + [
        Finding(
            "rule_failed",
            one["name"],
            f"Alert rule {one['name']} ({one['level']}) could not be evaluated: {one['error']}",
            "What it looks for is not noticed, and its alerts stay as they were.",
            "livewell migrate --check, and livewell warnings list for how often",
        )
        for one in alerts.get("rules", ())
        if one["failed"]
    ]


async def fired(patient: Patient) -> Sequence[Finding]:
    """Alerts that have fired and whose condition still holds."""
    return [
        Finding(
            "alert_fired",
            row["rule"],
            f"Alert {row['level']} {row['rule']} has fired for {row['n']:,}, the first "
            f"{instant(row['since'].isoformat())}: {row['summary']}",
            "The condition that it watches holds now. Its page says what to do: livewell docs "
            f"operations/alerts/{row['rule']}",
            f"livewell alerts show {row['id']}",
            level=row["level"],
        )
        for row in await patient.rows(_FIRED)
    ]


CHECKS: tuple[Check, ...] = (
    alerting,
    fired,
)
