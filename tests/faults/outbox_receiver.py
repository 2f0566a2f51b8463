"""A receiver of events, as a process of its own: it writes each line down, then answers it.

    python -m tests.faults.outbox_receiver PORT LOG

A line is `id tenant key seq pid`; the answer is the id. What it has written and not answered when
it is killed comes again with the same id. A file LOG.down makes it hang up on everybody.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from livewell.testing.history import AppendLog


async def serve(port: int, log: AppendLog) -> None:
    """Until killed."""

    def is_down() -> bool:
        return Path(f"{log.path}.down").exists()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not is_down() and (line := await reader.readline()):
            words = line.decode().strip()
            log.append(words)
            if "/hang" not in words:
                writer.write(f"{words.split()[0]}\n".encode())
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    print("receiving", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), AppendLog(Path(sys.argv[2]))))
