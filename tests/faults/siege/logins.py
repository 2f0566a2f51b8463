"""M4: keys that were never made, many a second, from the address of honest people."""

from __future__ import annotations

import asyncio
import string

from tests.faults.siege.crew import Crew

LETTERS = string.ascii_letters + string.digits
EVERY_SECONDS = 0.1


async def attack(crew: Crew, address: str) -> None:
    """A new random key for each request of a connection."""
    async with crew.line(address) as line:
        while not crew.over:
            key = f"lw_{''.join(crew.random.choices(LETTERS, k=16))}_{''.join(crew.random.choices(LETTERS, k=32))}"
            await line.send(crew.head("GET", "/v1/types", f"Authorization: Bearer {key}"))
            crew.note(await line.answer())
            await asyncio.sleep(crew.pace("every_seconds", EVERY_SECONDS))
