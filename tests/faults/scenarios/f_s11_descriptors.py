"""F-S11: the siege of a server that may have 400 descriptors (`ulimit -n 400`).

In the short form silent connections alone, more of them than descriptors.

Judged: people who are connected stay served, streams and requests; descriptors are left for the
database; the log says what is full (once a minute, so in the full form). Whether somebody new gets
a connection then is a figure: eight strangers' addresses may take all there are.

0.6.0, short form: all 400 descriptors were taken, 0 of 8 new connections were served, and the log
had no line.
"""

from __future__ import annotations

import asyncio
import re

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import besiege
from tests.faults.siege.attackers import ADDRESSES, crew
from tests.faults.siege.camp import Camp, open_camp
from tests.faults.siege.line import Cut, Line
from tests.faults.siege.siege import crews, judge

CODE = "F-S11"
TITLE = "the siege with 400 descriptors"

DESCRIPTORS = 400
SAID = re.compile("connections|descriptors", re.IGNORECASE)


async def run(scale: Scale) -> Findings:
    """All attackers in the full form, with silent ones enough to fill the server."""
    findings = Findings()
    seconds, room = scale.pick(10, 600), 20_000
    came: list[bool] = []
    async with open_camp(scale, descriptors_max=DESCRIPTORS) as camp:
        others = crews(camp) if scale.full else []
        silent = [crew("silent", DESCRIPTORS // 2, ADDRESSES[:4]), crew("half", DESCRIPTORS // 2, ADDRESSES[4:])]
        outcome = await besiege(
            scale, findings, camp, [*silent, *others], seconds=seconds, meanwhile=lambda: _knock(camp, seconds, came)
        )
        if scale.full:
            judge(scale, findings, camp, outcome.gang, seconds=seconds, room=room)
        said = [line for line in camp.log() if SAID.search(line)]
        findings.check(bool(said) or not scale.full, "the log does not say what is full")
        most = max(camp.process.descriptors)
    findings.check(
        most <= DESCRIPTORS - 10, f"{most} of {DESCRIPTORS} descriptors were used: none is left for the database"
    )
    findings.figures |= {"new_connections_served": f"{sum(came)} of {len(came)}", "said": said[0][:300] if said else ""}
    return findings


async def _knock(camp: Camp, seconds: float, came: list[bool]) -> None:
    """Somebody new at the honest address, once a second."""
    host, port = camp.site.base.removeprefix("http://").split(":")
    for _ in range(int(seconds * 0.8)):
        await asyncio.sleep(1)
        try:
            async with asyncio.timeout(3), Line(host, int(port), "127.0.0.1") as line:
                await line.send(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                came.append((await line.answer()).status == 200)
        except (Cut, TimeoutError):
            came.append(False)
