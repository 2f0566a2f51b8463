"""Beacons for whoever is on call: gauges, a check of the doctor, a line in `livewell state`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from livewell.finding import Check, Finding, Patient, span
from livewell.telemetry.gauge import Gauge, each
from livewell.telemetry.system_state import Document, part


async def silent(patient: Patient) -> Sequence[Finding]:
    """Beacons that have not reported in time."""
    return [
        Finding(
            "beacon_silent",
            one["name"],
            f"Beacon {one['name']} was last seen {span(one['silent_seconds'])} ago.",
            "The program that reports it has stopped, or cannot reach this server.",
            f"start the program again; if it is gone for good: livewell beacons --forget {one['name']}",
        )
        for one in part(patient.state, "beacons").get("beacons", ())
        if one["late"]
    ]


def stuck(document: Document) -> Iterator[str]:
    """The same in few words."""
    for one in part(document, "beacons").get("beacons", ()):
        if one["late"]:
            yield f"beacon {one['name']} is silent"


CHECKS: tuple[Check, ...] = (silent,)
GAUGES = (
    Gauge(
        "livewell_beacon_silent_seconds",
        "How long ago a beacon was seen.",
        ("beacon",),
        each("beacons", "beacons", ("name",), "silent_seconds"),
    ),
)
