"""One attack on a server with honest people in it.

What the scenarios F-S1 to F-S5 have in common.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.attackers import Gang, attackers
from tests.faults.siege.bystander import bystander
from tests.faults.siege.camp import Camp, open_camp


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the scenario judges beside the honest people's record."""

    gang: Gang
    cpu_seconds: float  # of the server, while the attack lasted


async def withstand(
    scale: Scale, findings: Findings, crews: Sequence[dict[str, Any]], *, seconds: float, **settings: Any
) -> Outcome:
    """A camp of its own, attacked for so long."""
    async with open_camp(scale, **settings) as camp:
        return await besiege(scale, findings, camp, crews, seconds=seconds)


async def besiege(
    scale: Scale,
    findings: Findings,
    camp: Camp,
    crews: Sequence[dict[str, Any]],
    *,
    seconds: float,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
    quick: bool = False,
) -> Outcome:
    """Attack for so long.

    Judge what honest people saw (quick: and how long they waited), and put the figures down.
    meanwhile: what else they do in this time.
    """
    before, begun = camp.process.cpu_seconds(), time.monotonic()
    async with bystander() as witness, attackers(camp.site, crews, seconds=seconds, seed=scale.seed) as gang:
        await asyncio.gather(camp.honest.stay(seconds), *([meanwhile()] if meanwhile else []))
        await camp.honest.see_last()
        spent = camp.process.cpu_seconds() - before
    camp.process.sample()
    camp.honest.record.judge(findings, witness.late, quick=quick)
    camp.report(findings, gang)
    findings.fired = gang.seen()["begun"]
    findings.figures |= {
        "server_cpu_seconds": round(spent, 2),
        "slowest_answers": [(round(at - begun, 1), kind, ms) for ms, kind, at in sorted(camp.honest.record.slow)[::-1]],
        "machine_late": [(round(at - begun, 1), ms) for at, ms in witness.late[:10]],
    }
    return Outcome(gang, spent)
