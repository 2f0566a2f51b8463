"""A check of the doctor: pairs of contacts that wait for a person."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from livewell.finding import Check, Finding, Patient, span
from livewell.telemetry.system_state import part

PATIENCE_SECONDS = 7 * 86400.0


async def undecided(patient: Patient) -> Sequence[Finding]:
    """Conflicts that nobody has decided for a week."""
    contacts = part(patient.state, "contacts")
    waiting, oldest = contacts.get("conflicts", 0), contacts.get("oldest_seconds")
    if not waiting or oldest is None or oldest < PATIENCE_SECONDS:
        return []
    return [
        Finding(
            "contact_conflicts",
            contacts["oldest_tenant"],
            f"{waiting:,}{' or more' if waiting >= 1000 else ''} pairs of contacts wait for somebody to decide, the "
            f"oldest for {span(oldest)} in tenant {contacts['oldest_tenant']}.",
            "Each pair is perhaps one person. Until it is decided, both go on with half of what is known.",
            f"livewell contacts conflicts --tenant {shlex.quote(contacts['oldest_tenant'])}",
            level="P2",
        )
    ]


CHECKS: tuple[Check, ...] = (undecided,)
