"""F-S8: keys that were never made, hundreds a second (finding M4; L2: many at once).

They come from the very address of honest people.

Judged: nobody with a good token or key is refused, keys that this process has never seen included;
and wrong keys are tried no more often than requests_per_second says.

0.6.0, short form: 3 honest requests were refused (429; whose is not recorded), and 595 wrong keys
were looked up in 6 s where 20 a second are allowed.
"""

from __future__ import annotations

import asyncio

from livewell.settings import Settings
from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import besiege
from tests.faults.siege.attackers import crew
from tests.faults.siege.camp import open_camp

CODE = "F-S8"
TITLE = "random keys from the address of honest people"

HONEST_ADDRESS = "127.0.0.1"
RATE = float(Settings.model_fields["requests_per_second"].default)
TRIED_TIMES_MAX = 1.5  # the rate and its burst, and what a small guaranteed rate for unknown keys adds


async def run(scale: Scale) -> Findings:
    """Sixty connections that try at once, then ten times a second each."""
    findings = Findings()
    seconds = scale.pick(6, 60)
    async with open_camp(scale) as camp:

        async def meanwhile() -> None:
            for number in range(5):
                await asyncio.sleep(seconds / 6)
                await camp.honest.newcomer(f"newcomer {number}", camp.site.key().text)

        crews = [crew("logins", 60, [HONEST_ADDRESS])]
        outcome = await besiege(scale, findings, camp, crews, seconds=seconds, meanwhile=meanwhile)
    seen = outcome.gang.seen()
    most = RATE * (seconds + 2) * TRIED_TIMES_MAX
    findings.fired = seen["401"] + seen["429"]
    findings.check(seen["401"] <= most, f"{seen['401']} wrong keys were looked up in {seconds} s, {most:g} are allowed")
    return findings
