"""F-B6: connections are reset while the answer is on its way, after a random number of its bytes.

With 0 the whole answer to a commit is lost.

The worker and a producer use that road. What was enqueued or committed without our learning of it
must not happen a second time.

Proven: with a handler that writes its effect in one transaction and finishes in the next, effects
were doubled; before ids were reserved with retries, one reset made enqueues give up.
"""

from __future__ import annotations

import asyncio

from tests.faults.database_support import Producer, at_port, check_alive, check_torn, proxy_to, rounded
from tests.faults.fleet import Fleet, open_fleet
from tests.faults.scenario import Findings, Scale

CODE = "F-B6"
TITLE = "connection reset in the middle of an answer"

BYTES_MAX = 300  # answers to a finish are tens of bytes, those to a claim hundreds to thousands


async def run(scale: Scale) -> Findings:
    findings, choose = Findings(), scale.random()
    async with open_fleet(scale, lease_seconds=3) as fleet, proxy_to(fleet.dsn) as proxy:
        road = at_port(fleet.dsn, proxy.port)
        async with Producer(fleet, road) as producer:
            await fleet.workers(1, database_url=road)
            next_key = 1
            for _ in range(scale.pick(18, 600)):
                # Half of the time the very next answer on each connection: that is where unknown
                # commits come from.
                proxy.reset_after(choose.choice((0, choose.randrange(BYTES_MAX))), resets_max=choose.randint(1, 4))
                if fleet.live() < 200:
                    await producer.enqueue(list(range(next_key, next_key + 20)))
                    next_key += 20
                await asyncio.sleep(choose.uniform(0.01, 0.12))
            findings.fired = proxy.counts.fired.get("reset_after", 0)
            proxy.heal()
            took = await fleet.converge(findings, 30)
            adopted = producer.adopt_unknown()
        await _one_reset_each(fleet, findings, next_key, scale.pick(4, 100))
        tally = fleet.audit(findings)
        torn = check_torn(fleet, findings)
        check_alive(fleet, findings)
        findings.figures |= {
            "resets": findings.fired,
            "duplicate_effects": tally.doubled,
            "lost": tally.lost,
            "torn": torn,
            "jobs_given_up": len(producer.unknown),
            "of_which_committed": adopted,
            "jobs": tally.jobs,
            "runs_repeated": tally.repeated,
            "converged_seconds": rounded(took),
        }
    return findings


async def _one_reset_each(fleet: Fleet, findings: Findings, next_key: int, times: int) -> None:
    """An enqueue survives a single lost answer, whichever of its calls it hits.

    Retried once, one effect.
    """
    async with (
        proxy_to(fleet.dsn) as proxy,
        Producer(fleet, at_port(fleet.dsn, proxy.port), nudge_ms=1) as producer,
    ):
        for number in range(times):
            proxy.reset_after(0, resets_max=1)
            await producer.enqueue(list(range(next_key, next_key + 40)))  # most of them reserve new ids as well
            next_key += 40
            findings.check(not producer.unknown, f"one reset made enqueue {number + 1} give up: {producer.errors}")
            await asyncio.sleep(0.05)  # its nudge is out
        findings.fired += proxy.counts.fired.get("reset_after", 0)
    await fleet.converge(findings, 120)
    producer.adopt_unknown()
