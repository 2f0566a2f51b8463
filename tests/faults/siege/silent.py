"""M1: connections that say nothing at all, and connections that never end the head of their request; no key."""

from __future__ import annotations

import asyncio

from tests.faults.siege.crew import Crew
from tests.faults.siege.line import Cut, Line

DRIP_SECONDS = 4.0


async def attack(crew: Crew, address: str) -> None:
    """Not a byte."""
    async with crew.line(address) as line:
        await _hold(crew, line)


async def attack_half(crew: Crew, address: str) -> None:
    """Half a head, and one more header line every few seconds."""
    async with crew.line(address) as line:
        await line.send(crew.head("GET", "/healthz")[:-2])
        while not await _gone(crew, line, DRIP_SECONDS):
            await line.send(b"X-More: yes\r\n")
        raise Cut("ended")


async def _hold(crew: Crew, line: Line) -> None:
    while not await _gone(crew, line, 60):
        pass
    raise Cut("ended")


async def _gone(crew: Crew, line: Line, seconds: float) -> bool:
    """Whether the server has ended it by then; an answer before (408) is counted."""
    try:
        async with asyncio.timeout(seconds):
            crew.note(await line.answer())
            return True
    except TimeoutError:
        return False
