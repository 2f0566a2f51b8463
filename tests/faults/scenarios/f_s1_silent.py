"""F-S1: connections that say nothing, or never end the head of their request (finding M1).

No key, hardly a byte.

Judged: each is ended within HEAD_SECONDS_MAX; honest people connect and are served all the while.
That they are few enough to leave descriptors for others is F-S11.

0.6.0, short form: none of 120 was ended in 18 s.
"""

from __future__ import annotations

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import withstand
from tests.faults.siege.attackers import crew

CODE = "F-S1"
TITLE = "silent connections and half a head"

HEAD_SECONDS_MAX = 15.0  # a head has 10 s, and a busy machine 5 more


async def run(scale: Scale) -> Findings:
    """From eight addresses."""
    findings = Findings()
    connections, seconds = scale.pick(60, 900), scale.pick(18, 75)
    crews = [crew("silent", connections), crew("half", connections)]
    outcome = await withstand(scale, findings, crews, seconds=seconds)
    for kind in ("silent", "half"):
        seen, held = outcome.gang.seen(kind), outcome.gang.held_seconds_max(kind)
        findings.check(seen["cut"] > 0, f"{kind}: none of {seen['begun']} was ended")
        findings.check(held <= HEAD_SECONDS_MAX, f"{kind}: one was held for {held:.1f} s")
    return findings
