"""H4: clients that ask for a file again and again on one connection, and never read; no key."""

from __future__ import annotations

import asyncio

from tests.faults.siege.crew import Crew
from tests.faults.siege.line import Cut, Line

REQUESTS_MAX = 100  # of 27 KB each: the buffers on the way hold 2.2 MB
LOOK_SECONDS = 0.6


async def attack(crew: Crew, address: str) -> None:
    """Until the server ends it; our socket takes 2 KB, so the server's own buffers fill."""
    async with crew.line(address, receive_bytes=2048) as line:
        asking = asyncio.create_task(_ask(crew, line))
        try:
            await asyncio.sleep(LOOK_SECONDS)  # the server has taken it by now, or it is in the backlog
            while crew.peers.holds(line.place):  # noqa: ASYNC110 - only the kernel knows
                await asyncio.sleep(LOOK_SECONDS)
            crew.seen["left_bytes_max"] = max(crew.seen["left_bytes_max"], crew.peers.left_bytes(line.place))
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        raise Cut("ended")


async def _ask(crew: Crew, line: Line) -> None:
    """Send requests little by little, and wait for ever when the server reads no more.

    Many requests at once would be an attack on the processor, and hide what this one is about.
    every_seconds: for one request; burst: so many are sent together.
    """
    burst, pause = int(crew.pace("burst", 10)), crew.pace("every_seconds", 0.2)
    for _ in range(REQUESTS_MAX // burst):
        await line.send(crew.head("GET", "/livewell.js") * burst)
        crew.seen["asked"] += burst
        await asyncio.sleep(pause * burst)
