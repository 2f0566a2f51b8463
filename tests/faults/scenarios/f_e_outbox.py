"""F-E10-outbox: the receiver is away for a while, and never answers some keys. F-E11: poison.

F-B1-outbox: Postgres crashes under emitters and relays.

F-E10-outbox holds: while the receiver hangs up on everybody no event is blamed; keys that it never
answers become dead letters after their attempts, and the others arrive meanwhile. F-E11 holds: an
event that the sink breaks on, and one that kills its relay, become dead letters with the reason; no
neighbour does. F-B1-outbox holds: what was acknowledged arrives, whatever the crash cut off.

What it guards against was seen: a line of the log that raised, so that poison was tried for ever
(tests/unit/test_in_flight.py), and a pause of an hour after every failure
(tests/sql/outbox/test_finish_events.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from tests.faults.database_support import own_server
from tests.faults.outbox_fleet import OutboxFleet, open_outbox
from tests.faults.scenario import Findings, Scale, Scenario
from tests.faults.scenarios.f_b1_crashed_server import crash

DURABLE = {"fsync": "on", "synchronous_commit": "on", "max_connections": "100"}


async def _until(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


def _letters(fleet: OutboxFleet) -> dict[str, str]:
    """Reason of each dead letter, by key."""
    return dict(
        fleet.rows("SELECT e.key, d.reason FROM livewell.dead_event d JOIN livewell.event e USING (number, day)")
    )


async def run_away(scale: Scale) -> Findings:
    """Keys that are never answered, and a receiver that comes and goes."""
    findings = Findings()
    hanging = [f"/hang{n}" for n in range(3)]
    async with open_outbox(scale) as fleet:
        await fleet.relays(2)
        async with fleet.emitting(3, pause_seconds=0.03):
            for n in range(scale.pick(2, 20)):
                fleet.emit("before", 1, tenant=f"{n}")
                fleet.go_away()
                assert fleet.receiver is not None
                await fleet.restart_receiver()
                before = len(fleet.received())
                await asyncio.sleep(scale.pick(1, 10))
                findings.check(len(fleet.received()) <= before + 1, "the receiver took something while it was away")
                fleet.come_back()
                findings.fired += 1
            blamed = fleet.value("SELECT count(*) FROM livewell.dead_event")
            findings.check(blamed == 0, f"{blamed} events are dead letters because the receiver was away")
            for key in hanging:
                fleet.in_flight.update(dict.fromkeys(fleet.emit(key), 7))  # eight attempts arrive
            findings.check(await fleet.arrives(hanging[0]), "no hanging event was tried")
            fleet.emit("behind", 20)
            findings.check(await fleet.arrives("behind", 20), "other keys waited for those that hang")
            findings.fired += len(hanging)
        await fleet.converge(findings, 120)
        letters = _letters(fleet)
        findings.check(letters == dict.fromkeys(hanging, "attempts"), f"dead letters are {letters}")
        fleet.audit(findings)
    return findings


async def run_poison(scale: Scale) -> Findings:
    """Events that break the sink, and events that kill the relay."""
    findings = Findings()
    poison = [f"/poison{n}" for n in range(scale.pick(3, 50))]
    killers = [f"/killer{n}" for n in range(scale.pick(1, 3))]
    async with open_outbox(scale, lease_seconds=2) as fleet:
        keeping = asyncio.create_task(_keep_relays(fleet, findings))
        async with fleet.emitting(3, pause_seconds=0.03):
            for key in [*poison, *killers]:
                fleet.emit(key)
                fleet.emit(f"good {key}".replace(" ", "-"))
            done = await _until(lambda: len(_letters(fleet)) >= len(poison) + len(killers), 240)
            findings.check(done, f"dead letters are {_letters(fleet)}: {fleet.state()}")
        findings.figures["converged_seconds"] = await fleet.converge(findings, 60)
        keeping.cancel()
        letters = _letters(fleet)
        wanted = dict.fromkeys(poison, "attempts") | dict.fromkeys(killers, "lost")
        findings.check(letters == wanted, f"dead letters are {letters}")
        # What is on its way when the sink breaks is sent again, event by event.
        breaks = 8 * len(poison) + 5 * len(killers)
        fleet.in_flight.update(dict.fromkeys((one.id for one in fleet.received()), breaks))
        fleet.audit(findings)
        del findings.figures["in_flight_at_faults"]
        findings.figures |= {"poison": len(poison), "killers": len(killers), "dead_letters": len(letters)}
    return findings


async def _keep_relays(fleet: OutboxFleet, findings: Findings) -> None:
    """Two relays; one that dies of its event is replaced."""
    crew = await fleet.relays(2)
    while True:
        for child in [one for one in crew if one.returncode is not None]:
            findings.fired += 1
            crew.remove(child)
            crew += await fleet.relays(1)
        await asyncio.sleep(0.05)


async def run_crash(scale: Scale) -> Findings:
    """Immediate stops and kill -9 of the postmaster."""
    findings = Findings()
    async with (
        own_server(DURABLE, on_disk=scale.full) as first_life,
        open_outbox(replace(scale, server=first_life.dsn)) as fleet,
    ):
        server = first_life
        await fleet.relays(2)
        async with fleet.emitting(4):
            for n in range(scale.pick(2, 30)):
                await asyncio.sleep(fleet.chance.uniform(0.5, 1.5))
                server = await asyncio.to_thread(crash, server, kill=n % 2 == 1)
                findings.fired += 1
        findings.figures["converged_seconds"] = await fleet.converge(findings, 60)
        # Nobody can look at what is in flight at the instant of a crash.
        fleet.in_flight.update(dict.fromkeys((one.id for one in fleet.received()), findings.fired))
        fleet.audit(findings)
        del findings.figures["in_flight_at_faults"]
        findings.figures["unknown_to_emitters"] = fleet.unknown
    return findings


SCENARIOS = (
    Scenario("F-E10-outbox", "A receiver that is away, and keys that it never answers", run_away),
    Scenario("F-E11", "Events that break the sink, and events that kill the relay", run_poison),
    Scenario("F-B1-outbox", "Postgres crashes under emitters and relays", run_crash),
)
