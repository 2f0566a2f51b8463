"""F-S5: bodies that go on after they were refused (finding H5).

Chunks of one byte at a megabyte a second, and bodies of half a gigabyte. No key, three connections.

Judged: a connection whose body was refused is ended within REFUSED_SECONDS_MAX, whatever it still
sends; honest people are answered. The server's processor time is a figure.

0.6.0, short form: all of 31 MB in 8 s were taken after the refusals, for 11.9 s of the processor;
21 honest requests were not answered within 10 s.
"""

from __future__ import annotations

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import withstand
from tests.faults.siege.attackers import crew

CODE = "F-S5"
TITLE = "bodies that go on after a refusal"

REFUSED_SECONDS_MAX = 5.0


async def run(scale: Scale) -> Findings:
    """One connection of chunks, two of large bodies."""
    findings = Findings()
    crews = [crew("chunks", 1, bytes_per_second=1_000_000), crew("large", 2, bytes_per_second=4_000_000)]
    outcome = await withstand(scale, findings, crews, seconds=scale.pick(8, 60))
    for kind in ("chunks", "large"):
        held, most = outcome.gang.held_seconds_max(kind), outcome.gang.seen(kind)["bytes_max"]
        findings.check(
            held <= REFUSED_SECONDS_MAX, f"{kind}: refused, and {most:,} bytes more were taken in {held:.1f} s"
        )
    return findings
