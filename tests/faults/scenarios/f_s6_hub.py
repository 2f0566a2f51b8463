"""F-S6: one public key follows as many keys as the server may follow (finding H6).

It attacks from four addresses, at the rates that are allowed.

Judged: people who come then, anonymous or with a name, get their session, their stream and a key
that nobody follows yet; people who are there may add one, and their streams go on. The attackers
get less than they asked for.

0.6.0, short form (a hub for 1,000 keys): strangers followed 999; three of three newcomers were
answered 503, and three of three streams that added a key were ended with `bye session`.
"""

from __future__ import annotations

import asyncio

from tests.faults.scenario import Findings, Scale
from tests.faults.siege.assault import besiege
from tests.faults.siege.attackers import ADDRESSES, crew
from tests.faults.siege.camp import open_camp

CODE = "F-S6"
TITLE = "a public key that fills the hub"

SESSIONS = 24


async def run(scale: Scale) -> Findings:
    """More keys in all than watched_keys_max, and nobody's budget of unknown keys is touched.

    They have values.
    """
    findings = Findings()
    room, keys, seconds = scale.pick(1000, 20_000), scale.pick(50, 1000), scale.pick(8, 60)
    async with open_camp(scale, watched_keys_max=room, client_keys_max=room // 20) as camp:
        stored = 2 * SESSIONS * keys
        camp.store_keys(stored + keys + 10)
        crews = [crew("hub", SESSIONS, ADDRESSES[:4], key=camp.public, keys=keys, stored=stored)]

        async def meanwhile() -> None:
            await asyncio.sleep(seconds * 0.75)  # the attackers are in
            first = stored + keys
            people = {
                "anonymous": camp.public,
                "key": camp.site.key().text,
                "token": camp.site.token("bob", scope="view subscribe"),
            }
            for number, (name, bearer) in enumerate(people.items(), 1):
                await camp.honest.newcomer(f"newcomer with {name}", bearer, f"K{first + number}")
            for number, person in enumerate(camp.honest.people[:3], 4):
                await camp.honest.look_at(person, f"K{first + number}")

        outcome = await besiege(scale, findings, camp, crews, seconds=seconds, meanwhile=meanwhile)
        asked, got = outcome.gang.seen()["keys"], outcome.gang.seen()["followed"]
        findings.fired = asked - got
        findings.check(got <= room / 2, f"strangers follow {got} keys of {room}: more than half")
    return findings
