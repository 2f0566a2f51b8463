"""H5: bodies that go on after the server has refused them.

Chunks of one byte, which cost the most to parse, and bodies larger than may be; no key.
"""

from __future__ import annotations

import asyncio
import time

from tests.faults.siege.crew import Crew
from tests.faults.siege.line import Line

CHUNK = b"1\r\nx\r\n"
BLOCK_BYTES = 60_000
LARGE_BYTES = 500_000_000


async def attack(crew: Crew, address: str) -> None:
    """Chunks of one byte, as fast as bytes_per_second says."""
    async with crew.line(address) as line:
        await line.send(crew.head("POST", "/v1/login", "Transfer-Encoding: chunked"))
        await _pour(crew, line, CHUNK * (BLOCK_BYTES // len(CHUNK)))


async def attack_large(crew: Crew, address: str) -> None:
    """A body of half a gigabyte."""
    async with crew.line(address) as line:
        await line.send(crew.head("POST", "/v1/login", f"Content-Length: {LARGE_BYTES}"))
        await _pour(crew, line, b"x" * BLOCK_BYTES)


async def _pour(crew: Crew, line: Line, block: bytes) -> None:
    """Send on, whatever is answered, until the connection is cut.

    The most that one connection got rid of is kept.
    """
    rate = crew.pace("bytes_per_second", 1_000_000)
    begun, sent = time.monotonic(), 0
    try:
        while not crew.over:
            await line.send(block)
            sent += len(block)
            await asyncio.sleep(max(0.0, begun + sent / rate - time.monotonic()))
    finally:
        crew.seen["bytes_max"] = max(crew.seen["bytes_max"], sent)
        crew.seen["bytes"] += sent
