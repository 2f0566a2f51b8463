"""H3: a body that is announced and then comes byte by byte; no key.

Each byte comes before a deadline per chunk would end it.
"""

from __future__ import annotations

import asyncio

from tests.faults.siege.crew import Crew

ANNOUNCED_BYTES = 900


async def attack(crew: Crew, address: str) -> None:
    """`POST /v1/login`, one `{`, then blanks."""
    every = crew.pace("every_seconds", 5)
    async with crew.line(address) as line:
        length = f"Content-Length: {ANNOUNCED_BYTES}"
        await line.send(crew.head("POST", "/v1/login", "Content-Type: application/json", length) + b"{")
        answer = asyncio.create_task(line.answer())
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=every)
                if not answer.done():
                    await line.send(b" ")
            crew.note(answer.result())
        finally:
            answer.cancel()
