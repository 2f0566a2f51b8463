"""F-S3: bodies that come byte by byte (finding H3).

They come on more connections than the server works on at once. No key, ten bytes a second.

Judged: nobody honest is refused; in the full form also that no body takes longer than
BODY_SECONDS_MAX.

0.6.0, short form: 121 of 128 honest requests were answered 503, /healthz among them.
"""

from __future__ import annotations

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import withstand
from tests.faults.siege.attackers import crew

CODE = "F-S3"
TITLE = "bodies that drip"

CONNECTIONS = 230  # requests_max is 200
BODY_SECONDS_MAX = 40.0  # a body has 30 s, and a busy machine 10 more


async def run(scale: Scale) -> Findings:
    """From eight addresses, each below the limit of requests of an address."""
    findings = Findings()
    every = scale.pick(2, 20)
    outcome = await withstand(
        scale, findings, [crew("drips", CONNECTIONS, every_seconds=every)], seconds=scale.pick(8, 80)
    )
    held = outcome.gang.held_seconds_max()
    findings.check(held <= BODY_SECONDS_MAX, f"one body took {held:.0f} s")
    return findings
