"""A server that does what no HTTP library would: raw bytes, on time or never, and a log of what it was asked."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

from livewell.testing.processes import eventually_async

Serve = Callable[["Visit"], Awaitable[None]]


class Visit:
    """One connection of a client."""

    def __init__(self, server: "HostileServer", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """Read the next request and write it down; empty when the client has left."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            return b""
        self._server.requests.append(head)
        return head

    async def send(self, *pieces: bytes, pause_seconds: float = 0.0) -> None:
        """Send bytes as they are."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            if pause_seconds:
                await asyncio.sleep(pause_seconds)

    async def gone(self) -> None:
        """Wait until the client has left."""
        try:
            await self._reader.read()
        except OSError:
            return

    def reset(self) -> None:
        """End with RST."""
        self._writer.transport.abort()


class HostileServer:
    """`async with HostileServer(serve) as server:` ... server.url, server.requests, server.connections."""

    def __init__(self, serve: Serve, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.port = 0
        self.sent = asyncio.Event()  # for a script to set
        self._closed = 0
        self._serve = serve
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    async def closed(self, count: int) -> None:
        """Wait until so many connections were closed on our side."""
        await eventually_async(lambda: self._closed >= count, interval=0.0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await self._serve(Visit(self, reader, writer))
        except (OSError, asyncio.CancelledError):
            return  # the client has left, or the test is over: what was done is in the log
        finally:
            writer.close()
            self._closed += 1


def answering(*pieces: bytes, pause_seconds: float = 0.0, hold: bool = False) -> Serve:
    """Answer every request of a connection with these bytes, then close it, or hold it open."""

    async def serve(visit: Visit) -> None:
        if await visit.request():
            await visit.send(*pieces, pause_seconds=pause_seconds)
            if hold:
                await visit.gone()

    return serve
