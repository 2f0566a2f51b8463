"""The other side, as small as it can be: one request on a connection of its own.

It carries the orders that fakes take.
"""

import asyncio

__all__ = ["exchange"]


async def exchange(port: int, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Ask a fake on this machine; gives status and body, or 0 when it closed without an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        first, _, answer = (await reader.read()).partition(b"\r\n\r\n")
        return int(first[9:12] or b"0"), answer
    finally:
        writer.close()
