"""F-S9: `/readyz` a thousand times a second (finding M5). No key.

Judged: it costs the database nothing, by the database's own count of transactions, beside the same
time without the flood; nobody honest is refused.

0.6.0 holds already: 1,739 requests cost no transaction.
"""

from __future__ import annotations

import asyncio

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import besiege
from tests.faults.siege.attackers import crew
from tests.faults.siege.camp import Camp, open_camp

CODE = "F-S9"
TITLE = "a flood of /readyz"

TRANSACTIONS_MAX = 0.1  # for one request
COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


async def run(scale: Scale) -> Findings:
    """Honest people alone, then beside it."""
    findings = Findings()
    seconds = scale.pick(5, 60)
    async with open_camp(scale) as camp:
        begun = await _commits(camp)
        await camp.honest.stay(seconds)
        calm = await _commits(camp)
        outcome = await besiege(scale, findings, camp, [crew("probes", 100)], seconds=seconds)
        stormy = await _commits(camp)
    asked = sum(n for status, n in outcome.gang.seen().items() if status.isdigit())
    each = ((stormy - calm) - (calm - begun)) / max(1, asked)
    findings.fired = asked
    findings.check(each <= TRANSACTIONS_MAX, f"one /readyz costs {each:.2f} transactions")
    findings.figures |= {"readyz_per_second": round(asked / seconds), "transactions_each": round(each, 3)}
    return findings


async def _commits(camp: Camp) -> int:
    """The server tells its count with a delay."""
    await asyncio.sleep(1.5)
    return int(camp.site.fleet.value(COMMITS))
