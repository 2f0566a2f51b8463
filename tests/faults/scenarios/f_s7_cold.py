"""F-S7: anonymous sessions without end, each with twenty keys that nobody knows (finding H7).

They come from eight addresses with one public key.

Judged in the database: no more unknown keys come up than the budget of a public key says (six times
cold_reads_max a minute); somebody with a key of their own still brings up one.

0.6.0 holds already: 120 of 3,920 came up in 6 s. 0.5.0 took 314 a second.
"""

from __future__ import annotations

import asyncio
import time

from livewell.settings import Settings
from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import besiege
from tests.faults.siege.attackers import crew
from tests.faults.siege.camp import Camp, open_camp
from tests.faults.siege.cold import PREFIX

CODE = "F-S7"
TITLE = "unknown keys of many anonymous sessions"

KEY_TIMES = 6  # documented with cold_reads_max
BUDGET = KEY_TIMES * int(Settings.model_fields["cold_reads_max"].default)


async def run(scale: Scale) -> Findings:
    """Sixteen connections."""
    findings = Findings()
    seconds, begun = scale.pick(6, 90), time.time()
    async with open_camp(scale) as camp:

        async def meanwhile() -> None:
            await asyncio.sleep(seconds * 0.75)
            await _cold_of_a_user(findings, camp)

        crews = [crew("cold", 16, key=camp.public)]
        outcome = await besiege(scale, findings, camp, crews, seconds=seconds, meanwhile=meanwhile)
        seen = outcome.gang.seen()
        known = camp.site.fleet.value("SELECT count(*) FROM livewell.ledger WHERE key LIKE %s", (f"{PREFIX}%",))
        sessions = camp.site.fleet.value("SELECT count(*) FROM livewell.viewer_session")
    minutes = int(time.time() // 60 - begun // 60) + 1  # a budget begins anew with each minute of the clock
    findings.fired = seen["cold_budget"] + seen["429"]
    findings.check(known <= BUDGET * minutes, f"{known} unknown keys came up, {BUDGET} a minute are allowed")
    findings.figures |= {"unknown_keys": known, "asked": seen["subscribed"] + seen["cold_budget"], "sessions": sessions}
    return findings


async def _cold_of_a_user(findings: Findings, camp: Camp) -> None:
    person = camp.honest.people[0]
    pairs = {"subscriptions": [{"type": "quote", "key": "NEWKEY"}]}
    path = f"/v1/sessions/{person.session}/subscriptions"
    status, told = await camp.honest.ask("subscribe", "PUT", path, person.bearer, pairs)
    answer = told["subscriptions"][0]["answer"] if status == 200 else status
    findings.check(answer == "subscribed", f"somebody with a key of their own brought up an unknown key: {answer}")
