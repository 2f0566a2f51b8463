"""F-E9: relays are killed and frozen, and the receiver is killed, while events are emitted.

F-A4-outbox: relays are only frozen, past their lease, and then go on: each is a zombie that sends
what it still has, and may finish nothing.

Nothing is lost, no key comes out of order, and an event comes twice only if it was in flight at a
kill or a freeze; then with the same id. The judge is the receiver's log.

What was broken on purpose to see the rules fail is in tests/races/test_outbox.py: an exchange
without the lock on its lease, and a hand-over that does not look at flights.
"""

from __future__ import annotations

import asyncio
from functools import partial

from livewell.testing.processes import ChildProcess
from tests.faults.outbox_fleet import OutboxFleet, open_outbox
from tests.faults.scenario import Findings, Scale, Scenario

CODE = "F-E9"
TITLE = "Relays killed and frozen, the receiver killed"

CREW = 4
FROZEN_SECONDS = 5.0  # longer than the lease


async def run(scale: Scale) -> Findings:
    """Kills and freezes, and the receiver restarted."""
    return await storm(scale, freezes_only=False)


async def storm(scale: Scale, *, freezes_only: bool) -> Findings:
    """One fault after the other, at random, under load."""
    findings = Findings()
    async with open_outbox(scale) as fleet:
        crew = await fleet.relays(CREW)
        async with fleet.emitting(6):
            await asyncio.sleep(0.5)
            for n in range(scale.pick(2, 50) if freezes_only else scale.pick(4, 100)):
                await _fault(fleet, crew, "freeze" if freezes_only or n % 3 == 1 else "kill")
                findings.fired += 1
                if n % 4 == 3 and not freezes_only:
                    await fleet.restart_receiver()
                    findings.fired += 1
                await asyncio.sleep(fleet.chance.uniform(0.1, 0.6))
        findings.figures["converged_seconds"] = await fleet.converge(findings, 60)
        fleet.audit(findings)
    return findings


async def _fault(fleet: OutboxFleet, crew: list[ChildProcess], what: str) -> None:
    victim = fleet.chance.choice(crew)
    if what == "kill":
        victim.kill()
        fleet.catch(victim.pid)
        crew.remove(victim)
        crew.extend(await fleet.relays(1))
        return
    victim.freeze()
    await asyncio.sleep(0.2)  # what it asked for is answered by now, and in flight
    fleet.catch(victim.pid)
    await asyncio.sleep(FROZEN_SECONDS)
    victim.thaw()


SCENARIOS = (
    Scenario("F-A4-outbox", "Relays frozen past their lease, then going on", partial(storm, freezes_only=True)),
)
