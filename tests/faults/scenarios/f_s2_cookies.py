"""F-S2: cookies that are dear to parse (finding H2). No key, eight kilobytes a request.

Judged: the processor time of the server per hostile request, which does not depend on how busy the
machine is; and that honest people are answered.

0.6.0, short form: 9.6 s of the processor for 40 requests, of which 6 were answered in 6 s; 20
honest requests were not answered within 10 s.
"""

from __future__ import annotations

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import withstand
from tests.faults.siege.attackers import crew

CODE = "F-S2"
TITLE = "cookies that are dear to parse"

CPU_MS_MAX = (
    20.0  # for one request, with all that honest people cost meanwhile; letters of the same length cost about 1 ms
)


async def run(scale: Scale) -> Findings:
    """Forty connections, one request after another on each."""
    findings = Findings()
    outcome = await withstand(scale, findings, [crew("cookies", 40)], seconds=scale.pick(6, 60))
    asked = max(1, sum(n for status, n in outcome.gang.seen().items() if status.isdigit()))
    each = 1000 * outcome.cpu_seconds / asked
    findings.check(each <= CPU_MS_MAX, f"a hostile cookie costs the server {each:.0f} ms of its processor")
    findings.figures["cpu_ms_per_request"] = round(each, 2)
    return findings
