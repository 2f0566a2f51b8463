"""M5: `/readyz`, as often as it is answered; no key."""

from __future__ import annotations

import asyncio

from tests.faults.siege.crew import Crew

EVERY_SECONDS = 0.1


async def attack(crew: Crew, address: str) -> None:
    """One request after another on a connection."""
    async with crew.line(address) as line:
        while not crew.over:
            await line.send(crew.head("GET", "/readyz"))
            crew.note(await line.answer())
            await asyncio.sleep(crew.pace("every_seconds", EVERY_SECONDS))
