"""F-S10: the siege.

All attacks of F-S1 to F-S9 at once, 500 connections from eight addresses for ten minutes, beside 50
honest viewers with streams, reads and heartbeats, and people who come meanwhile.

Judged: no honest request is refused or left without answer, no honest stream is dropped, newcomers
get in; reads take 250 ms (p99) and /healthz 100 ms at most (the short form only reports them: it
runs beside other tests); memory is flat, the log is short, no limit is exceeded.

0.6.0, short form: not one honest read was answered in 20 s; 42 requests had no answer within 10 s.
"""

from __future__ import annotations

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import besiege
from tests.faults.siege.camp import open_camp
from tests.faults.siege.siege import crews, judge, newcomers

CODE = "F-S10"
TITLE = "the siege: all attacks at once"


async def run(scale: Scale) -> Findings:
    """A fifth of the attackers and a twentieth of the hub in the short form."""
    findings = Findings()
    seconds, divisor = scale.pick(10, 600), scale.pick(5, 1)
    room, keys = scale.pick(1000, 20_000), scale.pick(250, 1000)
    async with open_camp(scale, watched_keys_max=room, client_keys_max=room // 20) as camp:
        outcome = await besiege(
            scale,
            findings,
            camp,
            crews(camp, divisor=divisor, keys=keys),
            seconds=seconds,
            meanwhile=lambda: newcomers(camp, seconds),
            quick=scale.full,
        )
        judge(scale, findings, camp, outcome.gang, seconds=seconds, room=room)
    return findings
