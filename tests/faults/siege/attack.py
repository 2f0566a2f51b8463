"""A process of attackers: `python -m tests.faults.siege.attack ORDER`.

ORDER is JSON: `{"port": …, "seconds": …, "crews": [CREW]}`, and a CREW is
`{"kind": "drips", "connections": 40, "addresses": ["127.0.0.2"]}`.

started ──"begun"──▶ every connection attacks, is cut, comes again ──seconds are over──▶ one JSON line: what each crew saw

Bounded: as many connections as asked for, a pause before each further attempt, and an end that does
not depend on the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.faults.siege import chunks, cold, cookies, deaf, drips, hub, logins, probes, silent
from tests.faults.siege.crew import Crew
from tests.faults.siege.line import Cut

AGAIN_SECONDS = 0.5  # at most, before a connection that was cut is made again


Kind = Callable[[Crew, str], Awaitable[None]]


KINDS: dict[str, Kind] = {
    "chunks": chunks.attack,
    "cold": cold.attack,
    "cookies": cookies.attack,
    "deaf": deaf.attack,
    "drips": drips.attack,
    "half": silent.attack_half,
    "hub": hub.attack,
    "large": chunks.attack_large,
    "logins": logins.attack,
    "probes": probes.attack,
    "silent": silent.attack,
}


async def _repeat(crew: Crew, kind: Kind, address: str) -> None:
    """One connection after another until the time is over."""
    await asyncio.sleep(crew.pace("arrive_seconds", 0.0) * crew.random.random())
    while not crew.over:
        begun = time.monotonic()
        crew.seen["begun"] += 1
        try:
            await kind(crew, address)
        except Cut:
            crew.seen["cut"] += 1
        finally:
            crew.held_seconds_max = max(crew.held_seconds_max, time.monotonic() - begun)
        await asyncio.sleep(crew.pace("again_seconds", AGAIN_SECONDS) * crew.random.uniform(0.5, 1))


async def _crew(crew: Crew) -> dict[str, Any]:
    kind = KINDS[crew.kind]
    tasks = [
        asyncio.create_task(_repeat(crew, kind, crew.addresses[number % len(crew.addresses)]))
        for number in range(crew.connections)
    ]
    await asyncio.sleep(max(0.0, crew.until - time.monotonic()))
    held = [task for task in tasks if not task.done()]
    for task in held:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    broken = [repr(one) for one in ended if isinstance(one, Exception)]
    return {
        "kind": crew.kind,
        "connections": crew.connections,
        "seen": dict(crew.seen),
        "held_seconds_max": round(crew.held_seconds_max, 2),
        "broken": broken[:3],
    }


async def main(order: dict[str, Any]) -> list[dict[str, Any]]:
    """All crews of this process at once."""
    os.nice(19)  # attackers have machines of their own: what they compute must not delay the server
    until = time.monotonic() + order["seconds"]
    common = {name: order[name] for name in ("host", "port")}
    source = random.Random(order["seed"])
    crews = [Crew(**common, **one, until=until, random=random.Random(source.random())) for one in order["crews"]]
    print("begun", flush=True)
    return await asyncio.gather(*(_crew(crew) for crew in crews))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))), flush=True)
